// SPDX-License-Identifier: Apache-2.0
// What vendors call back: the first byte is the vendor, the rest the body; a line before it is the
// value of every header that the vendor's signature needs.
// links: svc_webhook_receiver
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/vendor/ses/sns.h"
#include "common/vendor/vendor_callback.h"
#include "services/webhook-receiver/correlate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_events(const VendorCallback *vendor, Str body, Arena *arena)
{
    CallbackBatch batch = {0};
    Error err = {0};
    if (!vendor->events(body, arena, &batch, &err)) {
        assert(err.kind == ERROR_PERMANENT);
        return;
    }
    CallbackOrigin origin = {
        .tenant = STR("acme"), .vendor = str_from(vendor->name), .event_id = STR("x")};
    for (size_t i = 0; i < batch.count; i++) {
        const CallbackEvent *event = &batch.events[i];
        assert(event->text.len <= CALLBACK_TEXT_MAX && str_is_utf8(event->text));
        assert(!str_has_control(event->id) && !str_has_control(event->message_id));
        assert(!str_has_control(event->enhanced_code) && event->reason_code != NULL);
        assert(event->at_us >= 0 && event->attempt >= 0);
        assert(correlate_status(event, &origin, arena)->meta->event_id[0] != '\0');
    }
}

// Each part is no longer than asked for.
static void split(const VendorCallback *vendor, Str body, Arena *arena)
{
    enum { PART_MAX = 1000 };
    Str *parts = NULL;
    size_t count = 0;
    if (vendor->split == NULL || !vendor->split(body, PART_MAX, arena, &parts, &count, NULL)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        assert(parts[i].len > 0 && parts[i].len <= PART_MAX);
        read_events(vendor, parts[i], arena);
    }
}

// A body of a stranger's making is never good under a random key.
static void verify(const VendorCallback *vendor, Str value, Str body, Arena *arena)
{
    static const char *const names[] = {
        "Authorization",
        "svix-id",
        "svix-timestamp",
        "svix-signature",
        "X-Twilio-Email-Event-Webhook-Signature",
        "X-Twilio-Email-Event-Webhook-Timestamp",
        "X-Twilio-Signature",
        "telnyx-signature-ed25519",
        "telnyx-timestamp",
        "X-Hub-Signature-256"};
    VendorPair headers[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        headers[i] = (VendorPair){str_from(names[i]), value};
    }
    CallbackRequest request = {
        .url = STR("https://hooks.example.com/v1/inbound/acme/x/y"),
        .headers = headers,
        .header_count = sizeof names / sizeof *names,
        .body = body};
    CallbackKey keys[] = {{STR("none"), vendor->key_none(arena)}, {STR("bytes"), body}};
    CallbackVerdict verdict = CALLBACK_GOOD;
    size_t which = 0;
    assert(!vendor->verify(&request, keys, 1, &verdict, &which) && verdict != CALLBACK_GOOD);
    (void)vendor->verify(&request, keys, 2, &verdict, &which);
    (void)vendor->key_check(body, NULL);
    if (vendor->repeat_key != NULL) {
        (void)vendor->repeat_key(&request, arena);
    }
}

static const VendorCallback *vendor_of(uint8_t number)
{
    size_t count = 0;
    while (vendor_callback_at(count) != NULL) {
        count++;
    }
    return vendor_callback_at(number % count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const VendorCallback *vendor = vendor_of(data[0]);
    Arena *arena = arena_new(0);
    Str rest = str_of(data + 1, size - 1);
    ptrdiff_t line = str_find(rest, '\n');
    Str value = line < 0 ? STR_EMPTY : str_slice(rest, 0, (size_t)line);
    Str body = line < 0 ? rest : str_slice(rest, (size_t)line + 1, rest.len);
    read_events(vendor, body, arena);
    split(vendor, body, arena);
    verify(vendor, value, body, arena);
    (void)sns_is_pinned(value, body);
    (void)sns_is_topic(body);
    arena_free(arena);
    return 0;
}
