// SPDX-License-Identifier: Apache-2.0
// links: svc_webhook_receiver
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "services/webhook-receiver/correlate.h"
#include "services/webhook-receiver/sendgrid_verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Str body = str_of(data, size);
    SendgridBatch batch = {0};
    Error err = {0};
    if (sendgrid_events_parse(body, arena, &batch, &err)) {
        CallbackOrigin origin = {
            .tenant = STR("acme"), .vendor = STR("sendgrid"), .event_id = STR("x")};
        for (size_t i = 0; i < batch.count; i++) {
            const SendgridEvent *event = &batch.events[i];
            assert(event->text.len <= SENDGRID_TEXT_MAX && str_is_utf8(event->text));
            assert(!str_has_control(event->id) && !str_has_control(event->message_id));
            assert(correlate_status(event, &origin, arena)->meta->event_id[0] != '\0');
        }
    } else {
        assert(err.kind == ERROR_PERMANENT);
    }
    SendgridKey *key = sendgrid_key_new(body, NULL);
    sendgrid_key_free(key);
    arena_free(arena);
    return 0;
}
