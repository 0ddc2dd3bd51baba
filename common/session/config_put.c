// SPDX-License-Identifier: Apache-2.0
#include "common/session/config_put.h"

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/session/config_get.h"

enum { TRIES_MAX = 20 };

// A service that was taken over can have the server store an earlier message again, with its
// headers: one that says what it replaces is refused then.
static bool publish_in_place(
    Session *session, Arena *arena, const BusOut *out, uint64_t replaces, Error *err)
{
    const BusHeader expected = bus_replaces(replaces, arena);
    BusOut whole = *out;
    whole.headers = &expected;
    whole.header_count = 1;
    return session_publish(session, &whole, NULL, err);
}

static bool publish_over(Session *session, Arena *arena, const BusOut *out, Error *err)
{
    uint64_t there = 0;
    bool ok = false;
    for (int i = 0; i < TRIES_MAX && !ok; i++) {
        error_clear(err);
        session->err = (Error){0};
        ok = config_get_sequence(session, arena, out->subject, &there, err) &&
             publish_in_place(session, arena, out, there, err);
        if (!ok && err->kind != ERROR_CONFLICT) {
            break;
        }
    }
    return ok;
}

bool config_replace(
    Session *session, Arena *arena, const BusOut *out, uint64_t replaces, Error *err)
{
    bool ok = replaces == 0 ? publish_over(session, arena, out, err)
                            : publish_in_place(session, arena, out, replaces, err);
    return ok || (err->kind == ERROR_CONFLICT
                      ? error_set(
                            err, ERROR_CONFLICT,
                            "'%s' was changed by another writer meanwhile: try again", out->subject)
                      : false);
}

bool config_put(Session *session, Arena *arena, const ConfigEntry *entry, Error *err)
{
    Str payload;
    if (!event_pack(entry->message, arena, &payload, err)) {
        return false;
    }
    char subject[SUBJECT_SIZE];
    subject_config(subject, entry->kind, entry->tenant, entry->key);
    // Every put is a new fact, so its id is its own: the time makes it one.
    char event_id[EVENT_ID_SIZE];
    event_id_derive(
        "config", str_from(subject),
        str_from(arena_printf(arena, "%lld", (long long)clock_now_us())), event_id);
    BusOut out = {.subject = subject, .event_id = str_from(event_id), .payload = payload};
    return config_replace(session, arena, &out, entry->replaces, err);
}

bool config_put_once(
    const SessionOptions *options, Arena *arena, const ConfigEntry *entry, Error *err)
{
    Session session;
    if (!session_open(&session, options, err)) {
        return false;
    }
    bool ok = config_put(&session, arena, entry, err);
    session_close(&session);
    return ok;
}
