// SPDX-License-Identifier: Apache-2.0
// Hop: the one way from nats.c's threads into the loop: a locked vector, and uv_async_send only
// when it was empty. It outlives the link: each connection and subscription holds a reference until
// nats.c says that its last callback ran.
#pragma once

#include <nats/nats.h>
#include <uv.h>

#include "common/base/str.h"

typedef enum HopKind {
    HOP_MESSAGE,
    HOP_SERVED, // a message of the served subject
    HOP_SERVED_END,
    HOP_HEARD, // a message of a subject that is listened to
    HOP_DISCONNECTED,
    HOP_RECONNECTED,
    HOP_CLOSED,
    HOP_ERROR
} HopKind;

typedef struct HopItem {
    natsMsg *message; // HOP_MESSAGE, HOP_SERVED and HOP_HEARD only
    HopKind kind;
    unsigned generation; // of the connections; an event of an earlier one is stale
    unsigned breaks;     // HOP_MESSAGE: set by hop_push, hop_breaks() when it arrived
} HopItem;

typedef struct Hop Hop;

enum {
    HOP_ITEMS_MAX = 1 << 20, // beyond it messages are dropped, as on a broken connection; pulls
                             // keep it far below
    HOP_SERVED_BYTES_MAX = 32 * 1024 * 1024, // what others ask of us is bounded here alone
    HOP_HEARD_MAX = 16 * 1024,               // messages that are listened to: more are dropped
};

Hop *hop_new(uv_async_t *async);
Hop *hop_ref(Hop *hop);
void hop_unref(Hop *hop);
void hop_push(Hop *hop, HopItem item);          // any thread; takes the message
HopItem *hop_take(Hop *hop, size_t *ret_count); // loop thread; valid until the next hop_take
// How often a connection was lost or made again: what arrived under another number arrived over a
// connection that is gone. Any thread.
unsigned hop_breaks(Hop *hop);
void hop_permission_error(Hop *hop, const char *text); // any thread; the first one stays
bool hop_get_permission_error(Hop *hop, char *out, size_t size);
void hop_shut(Hop *hop); // nothing arrives any more: the async handle is about to close
