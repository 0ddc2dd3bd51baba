// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/triggers/entry_put.h"

#include <inttypes.h>

#include "common/bus/topology/topology.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"

typedef struct Putting {
    EntryPut put;
    bool lost; // another came first
} Putting;

static void on_bus_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    const Putting *putting = ctx;
    if (err != NULL) {
        api_answer_failure(putting->put.call, err);
    } else if (putting->lost) {
        precondition_answer_failed(putting->put.call, sequence);
    } else {
        putting->put.done(putting->put.ctx, sequence);
    }
}

static ConfigVerdict decide(void *ctx, uint64_t there)
{
    (void)there;
    Putting *putting = ctx;
    putting->lost = precondition_is_given(putting->put.needs);
    return putting->lost ? CONFIG_LEAVE : CONFIG_PUT;
}

void entry_put(const EntryPut *put)
{
    ApiCall *call = put->call;
    Arena *arena = call->http->arena;
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    Putting *putting = arena_zalloc(arena, sizeof *putting);
    putting->put = *put;
    subject_config(subject, put->kind, str_from(call->tenant), put->key);
    // Every put is a new fact, so its id is its own: the time makes it one.
    const char *when = arena_printf(arena, "%" PRId64, call->http->received_at_us);
    event_id_derive("config", str_from(subject), str_from(when), event_id);
    ConfigStore store = {
        .out = {.subject = subject, .event_id = str_from(event_id), .payload = put->payload},
        .replaces = put->replaces,
        .decide = decide,
        .done = on_bus_stored,
        .ctx = putting,
    };
    config_store(put->bus, &store, arena);
}
