// SPDX-License-Identifier: Apache-2.0
// Link: the only file that knows nats.c. Two connections to one server: `calm` coalesces writes
// (cheap at high rates, a lone write waits about a millisecond for nats.c's flusher), `swift`
// writes at once and is the one that listens. What arrives on nats.c's threads makes one hop into
// the loop. It is not a JetStream layer; it knows no acks and no retries. Law: everything is called
// on the loop thread, handlers are called from the loop. A send can block for the write deadline (2
// s) when the server does not read; publish.c bounds what is in the air so that this stays
// exceptional.
#pragma once

#include <nats/nats.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct Link Link;

typedef enum LinkLane { LINK_CALM, LINK_SWIFT, LINK_LANES } LinkLane;

typedef struct LinkOptions {
    const char *url; // several separated by commas
    const char *user;
    const char *password;
    const char *name;
    const char *inbox_prefix; // "_INBOX.stentor-ingest"
} LinkOptions;

typedef struct LinkHandlers {
    void (*on_message)(void *ctx, natsMsg *message); // now the callee's: natsMsg_Destroy
    void (*on_state)(void *ctx, bool connected);     // connected: both connections are
} LinkHandlers;

// Connects in the background and for ever again. The inbox is <prefix>.<random>; its subjects are
// "<inbox>.<token>".
Link *link_open(
    uv_loop_t *loop, const LinkOptions *options, const LinkHandlers *handlers, void *ctx);
const char *link_inbox(const Link *link);
bool link_connected(const Link *link);
// false: not connected, or the connection broke meanwhile.
bool link_publish(Link *link, LinkLane lane, natsMsg *message);
bool link_send(Link *link, LinkLane lane, const char *subject, const char *reply, Str payload);
const char *link_permission_error(const Link *link); // the first one; NULL: none
// Flushes (at most 2 s), closes on a worker thread; on_closed, then the link is gone.
void link_close(Link *link, void (*on_closed)(void *ctx), void *ctx);
