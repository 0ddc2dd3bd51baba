// SPDX-License-Identifier: Apache-2.0
#include "common/bus/bury.h"

#include <stdio.h>

#include "common/bus/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/dead.pb-c.h"

enum { LETTER_ROOM = 4096 };

static Str token_at(Str subject, int wanted)
{
    Str token = STR_EMPTY;
    for (int i = 0; i <= wanted; i++) {
        if (!str_split(&subject, '.', &token)) {
            return STR_EMPTY;
        }
    }
    return token;
}

static Str last_token(Str subject)
{
    Str token = STR_EMPTY;
    while (str_split(&subject, '.', &token)) {
        continue;
    }
    return token;
}

static Str find_tenant(Str subject)
{
    if (str_starts(subject, STR("evt."))) {
        return token_at(subject, 1);
    }
    if (str_starts(subject, STR("ntf.status.")) || str_starts(subject, STR("cfg."))) {
        return token_at(subject, 2);
    }
    return last_token(subject);
}

static void fill_meta(
    Stentor__V1__Meta *meta, const BusMessage *message, Str tenant, char *event_id, Arena *arena)
{
    char sequence[24];
    int len = snprintf(sequence, sizeof sequence, "%llu", (unsigned long long)message->sequence);
    event_id_derive("dead", str_from(message->stream), str_of(sequence, (size_t)len), event_id);
    meta->event_id = event_id;
    meta->tenant = arena_cstr(arena, id_is_tenant(tenant) ? tenant : STR("unknown"));
    meta->notification_id = arena_cstr(arena, STR("unknown"));
    meta->causation_id = arena_cstr(arena, message->event_id);
    meta->occurred_at_us = message->stored_at_us;
}

bool bury_pack(
    const BusMessage *message, const char *stage, const char *reason, Arena *arena, BusOut *ret)
{
    Stentor__V1__DeadLetter letter;
    Stentor__V1__Meta meta;
    Str tenant = find_tenant(message->subject);
    stentor__v1__dead_letter__init(&letter);
    stentor__v1__meta__init(&meta);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    fill_meta(&meta, message, tenant, event_id, arena);
    subject_dead(subject, stage, tenant);
    letter.meta = &meta;
    letter.stage = arena_cstr(arena, str_from(stage));
    letter.reason = arena_cstr(arena, str_from(reason));
    letter.stream = arena_cstr(arena, str_from(message->stream));
    letter.stream_sequence = message->sequence;
    letter.subject = arena_cstr(arena, message->subject);
    letter.payload = pb_data(str_slice(message->payload, 0, EVENT_BYTES_MAX - LETTER_ROOM));
    letter.deliveries = message->delivered;
    *ret = (BusOut){
        .subject = subject, .event_id = str_from(event_id), .traceparent = message->traceparent};
    return event_pack(&letter.base, arena, &ret->payload, NULL);
}
