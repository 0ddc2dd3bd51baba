// SPDX-License-Identifier: Apache-2.0
// links: svc_order_saga
// Any bytes as an event of the saga: refused with the field, or checked whole, and what may have to
// wait for its order is read again as it was. The first byte chooses the event and how it is
// written.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/orders/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_again(const SagaInput *in, Arena *arena)
{
    SagaInput again;
    Error err = {0};
    Str packed = saga_input_pack(in, arena);
    check(saga_input_unpack(
        packed, in->tenant, in->message_id, in->sequence, in->received_at_us, arena, &again, &err));
    check(again.kind == in->kind && strcmp(again.correlation_id, in->correlation_id) == 0);
    check(str_eq(again.reason, in->reason) && str_eq(again.tracking_number, in->tracking_number));
    check(again.has_refund == in->has_refund && again.refund_micros == in->refund_micros);
}

static void check_input(const SagaInput *in, Arena *arena)
{
    char id[UUID_SIZE];
    if (in->kind == INPUT_PASSED) {
        return;
    }
    check(uuid_read(str_from(in->correlation_id), id) && strcmp(id, in->correlation_id) == 0);
    check(in->total_micros >= 0 && in->total_micros % 10000 == 0 && in->refund_micros >= 0);
    check(!str_has_control(in->full_name) && str_is_utf8(in->full_name));
    if (in->kind == INPUT_CHECKED_OUT) {
        check(in->line_count <= ORDER_LINES_MAX);
        for (size_t i = 0; i < in->line_count; i++) {
            check(in->lines[i].quantity > 0 && in->lines[i].price_micros >= 0);
        }
        check(in->email.len > 2 && strlen(in->currency) == 3 && in->order_id[0] != '\0');
    } else if (in->kind == INPUT_TIMEOUT) {
        check(in->token_id[0] != '\0');
    } else {
        check_again(in, arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"UserCheckedOut", "StatusChanged", "PlaceOrderTimeout"};
    if (size == 0) {
        return 0;
    }
    DomainInput input = {
        .tenant = STR("acme"),
        .type = str_from(types[data[0] % 3]),
        .payload = str_of(data + 1, size - 1),
        .message_id = STR("m"),
        .stream = "EVENTS",
        .sequence = 7,
        .stored_at_us = INT64_C(1795199136000000),
        .content_type = data[0] / 3 % 2 == 1 ? STR("application/protobuf") : STR_EMPTY,
    };
    Arena *arena = arena_new(0);
    DomainEvent event;
    SagaInput in;
    Error err = {0};
    if (domain_event_read(&input, arena, &event, &err)) {
        if (saga_input_read(&event, 7, arena, &in, &err)) {
            check_input(&in, arena);
        } else {
            check(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        }
        domain_event_free(&event);
    }
    arena_free(arena);
    return 0;
}
