// SPDX-License-Identifier: Apache-2.0
// Letters to be sent again: noted in the audit log, then an event each for ingest. An event's id is
// derived from its letter and the call (or its Idempotency-Key): killed in the middle, a repeat
// publishes the same, and a letter that ingest has sent is gone.
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/codec/hash.h"
#include "common/deadletter/dead_note.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

enum { KEY_MAX = 128 };

static void go_on(Resending *r);

static size_t chunk_of(const Resending *r)
{
    size_t left = r->count - r->at;
    return left < DEAD_NOTE_MAX ? left : DEAD_NOTE_MAX;
}

// ---- publishing ----

static void settle(Resending *r)
{
    if (r->waiting > 0 || r->gathering) {
        return;
    }
    if (r->failure.kind != ERROR_NONE) {
        api_answer_failure(r->call, &r->failure);
        return;
    }
    r->at += chunk_of(r);
    go_on(r);
}

static void on_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Resending *r = ctx;
    (void)sequence, (void)duplicate;
    r->waiting--;
    if (err == NULL) {
        r->requested++;
    } else if (r->failure.kind == ERROR_NONE) {
        r->failure = *err;
    }
    settle(r);
}

static Str payload_of(const Resending *r, size_t at, Arena *arena)
{
    json_t *event = json_pack(
        "{s:I, s:s, s:b, s:b}", "dead_letter", (json_int_t)r->sequences[at], "requested_by",
        api_caller_name(r->call), "may_double", r->may_double, "ignore_expiry", r->ignore_expiry);
    if (r->notification_id[0] != '\0') {
        (void)json_object_set_new(event, "notification_id", json_string(r->notification_id));
    }
    char *text = json_dumps(event, JSON_COMPACT);
    Str payload = str_from(arena_cstr(arena, str_from(text)));
    free(text);
    json_decref(event);
    return payload;
}

static void publish(Resending *r, size_t at, Arena *arena)
{
    const DeadLettersApi *api = r->call->ctx;
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    Str key = http_header(r->call->http, "Idempotency-Key");
    Str cause = key.len > 0 ? key : str_from(r->call->http->id);
    const char *letter = arena_printf(
        arena, "%s/%" PRIu64 "/%" PRId64 "/%d%d", r->call->tenant, r->sequences[at],
        r->stored_us[at], r->may_double, r->ignore_expiry);
    event_id_derive("resend", cause, str_from(letter), id);
    BusOut out = {
        .subject = arena_printf(arena, "evt.%s.ResendErrorEmail", r->call->tenant),
        .event_id = str_from(id),
        .payload = payload_of(r, at, arena),
    };
    if (!event_seal_out(api->keys, clock_mono_us(), &out, arena, &r->failure)) {
        return;
    }
    r->waiting++;
    bus_publish(api->bus, &out, on_acked, r);
}

static void on_noted(void *ctx, const Error *err, const AuditHead *head)
{
    Resending *r = ctx;
    (void)head;
    if (err != NULL) {
        api_answer_failure(r->call, err);
        return;
    }
    CRASH_POINT("gateway.letters_noted");
    Arena *arena = arena_new(0); // a chunk's; the request's lives for all
    r->gathering = true;
    for (size_t i = 0, count = chunk_of(r); i < count && r->failure.kind == ERROR_NONE; i++) {
        publish(r, r->at + i, arena);
    }
    arena_free(arena);
    r->gathering = false;
    settle(r);
}

// ---- noting ----

static void go_on(Resending *r)
{
    ApiCall *call = r->call;
    const DeadLettersApi *api = call->ctx;
    if (r->at == r->count) {
        r->done(r->ctx, r->requested);
        return;
    }
    const DeadNote note = {
        .tenant = call->tenant,
        .actor = api_caller_name(call),
        .request_id = call->http->id,
        .program = "stentor-gateway",
        .notification_id = r->count == 1 ? r->notification_id : "",
        .sequences = r->sequences + r->at,
        .count = chunk_of(r),
        .may_double = r->may_double,
        .ignore_expiry = r->ignore_expiry,
        .at_us = call->http->received_at_us,
    };
    dead_note_append(api->audit, &note, on_noted, r);
}

void dead_letters_resend(Resending *resending)
{
    Str key = http_header(resending->call->http, "Idempotency-Key");
    if (key.len > KEY_MAX || str_has_control(key) || !str_is_utf8(key)) {
        (void)api_refuse_field(
            resending->call, "Idempotency-Key", "at most %d printable characters", KEY_MAX);
        return;
    }
    go_on(resending);
}
