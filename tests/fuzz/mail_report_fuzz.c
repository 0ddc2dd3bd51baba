// SPDX-License-Identifier: Apache-2.0
// links: svc_webhook_receiver
// A report of the process that reads mail, which the mail may have taken over, and fields as they
// stand in a bounce. Nothing of it is suppressed, for no proof can be in it.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "services/webhook-receiver/mail/mail_events.h"
#include "services/webhook-receiver/mail/mail_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const CallbackBatch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const CallbackEvent *event = &batch->events[i];
        assert(event->status != STATUS_NONE && event->suppress == SUPPRESSION_NONE);
        assert(event->text.len <= CALLBACK_TEXT_MAX && str_is_utf8(event->text));
        assert(!str_has_control(event->text) && event->enhanced_code.len <= 11);
        assert(id_parse(event->notification_id, "ntf_", NULL) && event->id.len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Str text = str_of(data, size);
    MailReport report;
    Error err = {0};
    if (mail_report_read(text, arena, &report, &err)) {
        MailKeys keys = {.bounce = {.bytes = {{1}}, .count = 1}, .opt_out = {{{2}}, 1}};
        keys.hash = (HashKeys){.keys = {STR("hash key")}, .count = 1};
        MailOrigin origin = {STR("acme"), STR("fbl@bounce.acme.test"), 1};
        CallbackBatch batch = {0};
        mail_events(&report, &origin, &keys, arena, &batch);
        look_at(&batch);
    } else {
        assert(err.kind == ERROR_PERMANENT);
    }
    MailField field;
    size_t fields = 0;
    while (mail_field_next(&text, arena, &field)) {
        assert(field.name.len > 0 && field.value.len <= size && ++fields <= size);
    }
    arena_free(arena);
    return 0;
}
