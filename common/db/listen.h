// SPDX-License-Identifier: Apache-2.0
// LISTEN on a connection of its own, which reconnects for ever. It is a wake-up and no more: what
// was notified while the connection was away is not repeated, so its user also looks by itself now
// and then, and once on each `listening`. Behind a pooler that hands out sessions per
// transaction nothing ever arrives; the own look is what is left then.
#pragma once

#include <uv.h>

#include "common/base/str.h"

// An idle connection whose server has gone in silence is noticed by a word every so often.
enum { DB_LISTEN_CHECK_MS = 15000 };

typedef struct DbListen DbListen;

typedef struct DbListenEvents {
    // From the loop, once for each notification; `payload` is valid during the call.
    void (*notified)(void *ctx, Str payload);
    // It listens from now on (true), or does not hear any more (false).
    void (*listening)(void *ctx, bool listening);
} DbListenEvents;

// `channel` is a name of [a-z0-9_] of at most 63 characters. Never fails for an absent server.
DbListen *db_listen_new(
    uv_loop_t *loop, const char *url, const char *channel, const DbListenEvents *events, void *ctx);
bool db_listen_live(const DbListen *listen);
// No event comes any more; on_closed comes from the loop, and then it is gone.
void db_listen_close(DbListen *listen, void (*on_closed)(void *ctx), void *ctx);
