// SPDX-License-Identifier: Apache-2.0
// Dead letters for tests; everything lives in the arena.
#pragma once

#include <assert.h>

#include "common/codec/event.h"
#include "common/deadletter/letter.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

#define NTF_ID "ntf_01KAGTQ5M0000000000000000A"
#define NOW_US INT64_C(1763648968320000)

typedef Stentor__V1__Rendered Rendered;
typedef Stentor__V1__Attempt Attempt;
typedef Stentor__V1__DeadLetter DeadLetter;

static inline char *text_of(const char *text)
{
    return (char *)(uintptr_t)text; // read only
}

static inline Stentor__V1__Meta *meta_new(Arena *arena, const char *event_id)
{
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof *meta);
    stentor__v1__meta__init(meta);
    meta->event_id = text_of(event_id);
    meta->tenant = text_of("demo");
    meta->notification_id = text_of(NTF_ID);
    meta->correlation_id = text_of("corr-1");
    return meta;
}

static inline Stentor__V1__Sealed *sealed_new(Arena *arena)
{
    Stentor__V1__Sealed *sealed = arena_alloc(arena, sizeof *sealed);
    stentor__v1__sealed__init(sealed);
    sealed->key_generation = 1;
    sealed->ciphertext = pb_data(STR("ciphertext"));
    return sealed;
}

static inline Rendered *rendered_new(Arena *arena)
{
    Rendered *event = arena_alloc(arena, sizeof *event);
    stentor__v1__rendered__init(event);
    event->meta = meta_new(arena, "rendered-event-id-0022");
    event->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    event->priority = STENTOR__V1__PRIORITY__PRIORITY_NORMAL;
    event->address = sealed_new(arena);
    event->content = sealed_new(arena);
    event->content_checksum = pb_data(STR("\x01\x02\xff"));
    event->attempt = 6;
    event->rung = 5;
    return event;
}

static inline Attempt **attempts_new(Arena *arena, uint32_t first, uint32_t count)
{
    Attempt **all = arena_array(arena, count, sizeof(Attempt *));
    for (uint32_t i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof **all);
        stentor__v1__attempt__init(all[i]);
        all[i]->number = first + i;
    }
    return all;
}

static inline Str packed(Arena *arena, const ProtobufCMessage *event)
{
    Str bytes = STR_EMPTY;
    bool ok = event_pack(event, arena, &bytes, NULL);
    assert(ok);
    (void)ok;
    return bytes;
}

static inline DeadLetter *letter_new(Arena *arena, const char *subject, Str payload)
{
    DeadLetter *letter = arena_alloc(arena, sizeof *letter);
    stentor__v1__dead_letter__init(letter);
    letter->meta = meta_new(arena, "letter-event-id-000022");
    letter->meta->notification_id = text_of("unknown");
    letter->meta->causation_id = text_of("rendered-event-id-0022");
    letter->stage = text_of("dispatcher");
    letter->reason = text_of("retries_exhausted: 451 try later");
    letter->stream = text_of("RENDERED_NORMAL");
    letter->stream_sequence = 17;
    letter->subject = text_of(subject);
    letter->payload = pb_data(payload);
    letter->deliveries = 1;
    return letter;
}

static inline Letter read_letter(Arena *arena, const DeadLetter *body)
{
    BusMessage message = {
        .subject = str_from(arena_printf(arena, "ntf.dead.%s.demo", body->stage)),
        .payload = packed(arena, &body->base),
        .traceparent = STR("trace"),
        .stream = "DEAD",
        .sequence = 4,
        .stored_at_us = NOW_US - 90 * 1000000,
    };
    Letter letter;
    letter_read(&message, arena, &letter);
    return letter;
}

static inline Letter mail_letter(Arena *arena, const Rendered *event)
{
    return read_letter(
        arena, letter_new(arena, "ntf.rendered.normal.demo", packed(arena, &event->base)));
}
