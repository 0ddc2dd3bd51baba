// SPDX-License-Identifier: Apache-2.0
#include "services/cli/config_put.h"

#include "common/base/clock.h"
#include "common/bus/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/cli/config_get.h"

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
    // A service that was taken over can have the server store an earlier message again, with its
    // headers: one that says what it replaces is refused then.
    uint64_t replaces = entry->replaces;
    if (replaces == 0 && !config_get_sequence(session, arena, subject, &replaces, err)) {
        return false;
    }
    const BusHeader expected = bus_replaces(replaces, arena);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .payload = payload,
        .headers = &expected,
        .header_count = 1,
    };
    if (session_publish(session, &out, NULL, err)) {
        return true;
    }
    return err->kind == ERROR_PERMANENT
               ? error_set(
                     err, ERROR_CONFLICT, "'%s' was changed by another meanwhile: try again",
                     subject)
               : false;
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
