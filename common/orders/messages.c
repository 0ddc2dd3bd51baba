// SPDX-License-Identifier: Apache-2.0
#include "common/orders/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/events/sealed.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/order.pb-c.h"

static const char recipient_field[] = "order.person";
static const char command_field[] = "order.command";

static void derive(
    const char *stage, Str tenant, const char *order, const char *what, char out[EVENT_ID_SIZE])
{
    char cause[128]; // a tenant has 32 bytes, an order 36
    (void)snprintf(cause, sizeof cause, STR_FMT "/%s", STR_ARG(tenant), order);
    event_id_derive(stage, str_from(cause), str_from(what), out);
}

static void begin(const Order *order, const char *type, OutMessage *out)
{
    *out = (OutMessage){.tenant = order->tenant, .type = type};
    memcpy(out->correlation_id, order->correlation_id, UUID_SIZE);
}

// ---- commands ----

static Stentor__V1__OrderLine **pack_lines(const Recipient *recipient, Arena *arena)
{
    Stentor__V1__OrderLine **lines = arena_array(arena, recipient->line_count + 1, sizeof *lines);
    for (size_t i = 0; i < recipient->line_count; i++) {
        const SagaLine *line = &recipient->lines[i];
        lines[i] = arena_alloc(arena, sizeof **lines);
        stentor__v1__order_line__init(lines[i]);
        lines[i]->product_id = pb_text(arena, line->product_id);
        lines[i]->name = pb_text(arena, line->name);
        lines[i]->quantity = line->quantity;
        lines[i]->price_micros = line->price_micros;
    }
    return lines;
}

// The fields that all four share.
#define FILL(message, order, recipient, arena)                                                     \
    do {                                                                                           \
        (message).order_id = arena_cstr((arena), str_from((order)->order_id));                     \
        (message).correlation_id = arena_cstr((arena), str_from((order)->correlation_id));         \
        (message).full_name = arena_cstr((arena), (recipient)->full_name);                         \
        (message).email = arena_cstr((arena), (recipient)->email);                                 \
        (message).total_micros = (order)->total_micros;                                            \
        (message).currency = arena_cstr((arena), str_from((order)->currency));                     \
        (message).lines = pack_lines((recipient), (arena));                                        \
        (message).n_lines = (recipient)->line_count;                                               \
    } while (0)

static bool pack_place(
    const Order *order, const Recipient *recipient, Arena *arena, Str *ret, Error *err)
{
    Stentor__V1__PlaceOrder message;
    stentor__v1__place_order__init(&message);
    FILL(message, order, recipient, arena);
    return event_pack(&message.base, arena, ret, err);
}

static bool pack_complete(
    const Order *order, const Recipient *recipient, const SagaInput *cause, Arena *arena, Str *ret,
    Error *err)
{
    Stentor__V1__CompleteOrder message;
    stentor__v1__complete_order__init(&message);
    FILL(message, order, recipient, arena);
    message.carrier = arena_cstr(arena, cause->carrier);
    message.tracking_number = arena_cstr(arena, cause->tracking_number);
    return event_pack(&message.base, arena, ret, err);
}

static bool pack_cancel(
    const Order *order, const Recipient *recipient, const SagaInput *cause, Arena *arena, Str *ret,
    Error *err)
{
    Stentor__V1__CancelOrder message;
    stentor__v1__cancel_order__init(&message);
    FILL(message, order, recipient, arena);
    message.reason = arena_cstr(arena, cause->reason);
    message.refund_micros = cause->has_refund ? cause->refund_micros : order->total_micros;
    return event_pack(&message.base, arena, ret, err);
}

static bool pack_failed(
    const Command *command, const Recipient *recipient, Arena *arena, Str *ret, Error *err)
{
    Stentor__V1__OrderFailed message;
    stentor__v1__order_failed__init(&message);
    FILL(message, command->order, recipient, arena);
    message.attempts = command->retries;
    message.reason = arena_cstr(arena, str_from(SAGA_FAILED_REASON));
    return event_pack(&message.base, arena, ret, err);
}

Recipient recipient_of(const SagaInput *checked_out)
{
    return (Recipient){
        .email = checked_out->email,
        .full_name = checked_out->full_name,
        .lines = checked_out->lines,
        .line_count = checked_out->line_count,
    };
}

bool message_command(
    const Command *command, const Recipient *recipient, Arena *arena, OutMessage *ret, Error *err)
{
    const Order *order = command->order;
    const char *type = command_name(command->command);
    begin(order, type, ret);
    derive("command", order->tenant, order->correlation_id, type, ret->event_id);
    subject_event(ret->subject, order->tenant, str_from(type));
    ret->happened_at_us = command->happened_at_us;
    ret->seen_at_us = command->cause->received_at_us;
    switch (command->command) {
    case COMMAND_PLACE:
        return pack_place(order, recipient, arena, &ret->payload, err);
    case COMMAND_COMPLETE:
        return pack_complete(order, recipient, command->cause, arena, &ret->payload, err);
    case COMMAND_CANCEL:
        return pack_cancel(order, recipient, command->cause, arena, &ret->payload, err);
    case COMMAND_FAIL:
        return pack_failed(command, recipient, arena, &ret->payload, err);
    case COMMAND_NONE:
    case COMMAND_COUNT:
        break;
    }
    return error_set(err, ERROR_PERMANENT, "the state machine has no such command");
}

// ---- deferrals ----

static bool pack_deferred(
    OutMessage *out, const char *type, Str event, int64_t due_at_us, Arena *arena, Error *err)
{
    MetaSpec head = {
        .event_id = out->event_id,
        .tenant = arena_cstr(arena, out->tenant),
        .correlation_id = out->correlation_id,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__DomainEvent later;
    stentor__v1__domain_event__init(&later);
    later.type = arena_cstr(arena, str_from(type));
    later.payload = pb_data(event);
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.meta = &meta;
    deferred.reason = arena_cstr(arena, STR("saga"));
    deferred.due_at_us = due_at_us;
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_EVENT;
    deferred.event = &later;
    subject_deferred(out->subject, "saga", out->tenant);
    return event_pack(&deferred.base, arena, &out->payload, err);
}

bool message_timeout(
    const Command *wait, int64_t due_at_us, Arena *arena, OutMessage *ret, Error *err)
{
    const Order *order = wait->order;
    char number[16];
    begin(order, "Deferred", ret);
    (void)snprintf(number, sizeof number, "%" PRId32, wait->retries);
    derive("timeout", order->tenant, order->correlation_id, number, ret->event_id);
    Stentor__V1__PlaceOrderTimeout timeout;
    stentor__v1__place_order_timeout__init(&timeout);
    timeout.correlation_id = ret->correlation_id;
    timeout.token_id = arena_cstr(arena, str_from(wait->token_id));
    Str packed = STR_EMPTY;
    return event_pack(&timeout.base, arena, &packed, err) &&
           pack_deferred(ret, "PlaceOrderTimeout", packed, due_at_us, arena, err);
}

bool message_retention(int64_t period, int64_t period_s, Arena *arena, OutMessage *ret, Error *err)
{
    char number[24];
    char due[CLOCK_RFC3339_SIZE];
    int64_t due_at_us = period * period_s * INT64_C(1000000);
    *ret = (OutMessage){.tenant = STR("platform"), .type = "Deferred"};
    (void)snprintf(number, sizeof number, "%" PRId64 "/%" PRId64, period, period_s);
    event_id_derive("retention", STR("order-saga"), str_from(number), ret->event_id);
    clock_format(due_at_us, due);
    Stentor__V1__CleanUpOrders clean_up;
    stentor__v1__clean_up_orders__init(&clean_up);
    clean_up.due = due;
    Str packed = STR_EMPTY;
    return event_pack(&clean_up.base, arena, &packed, err) &&
           pack_deferred(ret, "CleanUpOrders", packed, due_at_us, arena, err);
}

// ---- publishing ----

bool message_is_command(Str type)
{
    return !str_eq(type, STR("Deferred"));
}

BusOut message_out(const OutMessage *message, Str traceparent, Arena *arena)
{
    BusOut out = {
        .subject = message->subject,
        .event_id = str_from(message->event_id),
        .payload = message->payload,
        .traceparent = traceparent,
    };
    Str type = str_from(message->type);
    if (!message_is_command(type)) {
        return out;
    }
    char *at = arena_alloc(arena, CLOCK_RFC3339_SIZE);
    char *seen = arena_alloc(arena, CLOCK_RFC3339_SIZE);
    clock_format(message->happened_at_us, at);
    clock_format(message->seen_at_us, seen);
    Str full = str_from(arena_printf(arena, "stentor.v1.%s", message->type));
    BusHeader headers[] = {
        {"Content-Type", STR("application/protobuf")},
        {"Stentor-Type", full},
        {"ce-specversion", STR("1.0")},
        {"ce-id", out.event_id},
        {"ce-source", STR("/stentor/order-saga")},
        {"ce-type", full},
        // Readers derive their ids from it, so a repeat has the same ids.
        {"ce-time", str_from(at)},
        // A trigger decides by it whether it is too late for a mail.
        {DOMAIN_SEEN_HEADER, str_from(seen)},
    };
    out.headers = arena_copy(arena, headers, sizeof headers);
    out.header_count = sizeof headers / sizeof headers[0];
    return out;
}

// ---- sealed ----

static Str pack_sealed(
    DataKey *key, Str tenant, Str correlation_id, const char *field, Str plain, Arena *arena)
{
    const Stentor__V1__Sealed *sealed = seal(key, tenant, correlation_id, field, plain, arena);
    Str packed = STR_EMPTY;
    (void)event_pack(&sealed->base, arena, &packed, NULL); // a few hundred bytes
    return packed;
}

static const Stentor__V1__Sealed *sealed_of(Str packed, Arena *arena, Error *err)
{
    return (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, packed, arena, err);
}

Str recipient_seal(DataKey *key, const Order *order, const Recipient *recipient, Arena *arena)
{
    Stentor__V1__OrderRecipient whose;
    stentor__v1__order_recipient__init(&whose);
    whose.address = arena_cstr(arena, recipient->email);
    whose.name = arena_cstr(arena, recipient->full_name);
    whose.lines = pack_lines(recipient, arena);
    whose.n_lines = recipient->line_count;
    Str plain = STR_EMPTY;
    (void)event_pack(&whose.base, arena, &plain, NULL); // all of it is checked
    return pack_sealed(
        key, order->tenant, str_from(order->correlation_id), recipient_field, plain, arena);
}

static const SagaLine *unpack_lines(const Stentor__V1__OrderRecipient *whose, Arena *arena)
{
    SagaLine *lines = arena_array(arena, whose->n_lines + 1, sizeof *lines);
    for (size_t i = 0; i < whose->n_lines; i++) {
        const Stentor__V1__OrderLine *line = whose->lines[i];
        lines[i] = (SagaLine){
            .product_id = str_from(line->product_id),
            .name = str_from(line->name),
            .quantity = line->quantity,
            .price_micros = line->price_micros,
        };
    }
    return lines;
}

bool recipient_unseal(DataKey *key, const Order *order, Arena *arena, Recipient *ret, Error *err)
{
    const Stentor__V1__Sealed *sealed = sealed_of(order->recipient, arena, err);
    Str plain = STR_EMPTY;
    if (sealed == NULL || !unseal(
                              key, order->tenant, str_from(order->correlation_id), recipient_field,
                              sealed, arena, &plain, err)) {
        return false;
    }
    const Stentor__V1__OrderRecipient *whose = (const Stentor__V1__OrderRecipient *)event_unpack(
        &stentor__v1__order_recipient__descriptor, plain, arena, err);
    if (whose == NULL) {
        return false;
    }
    *ret = (Recipient){
        .email = str_from(whose->address),
        .full_name = str_from(whose->name),
        .lines = unpack_lines(whose, arena),
        .line_count = whose->n_lines,
    };
    return true;
}

Str command_seal(DataKey *key, const OutMessage *message, Arena *arena)
{
    return pack_sealed(
        key, message->tenant, str_from(message->correlation_id), command_field, message->payload,
        arena);
}

bool command_unseal(
    DataKey *key, Str tenant, Str correlation_id, Str body, Arena *arena, Str *ret, Error *err)
{
    const Stentor__V1__Sealed *sealed = sealed_of(body, arena, err);
    return sealed != NULL &&
           unseal(key, tenant, correlation_id, command_field, sealed, arena, ret, err);
}

KeyWant message_key_want(Str tenant, Str packed, Arena *arena)
{
    const Stentor__V1__Sealed *sealed = sealed_of(packed, arena, NULL);
    return sealed_names_key(sealed) ? key_want_of(tenant, sealed)
                                    : (KeyWant){.tenant = tenant, .generation = 1};
}
