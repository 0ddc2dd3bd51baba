// SPDX-License-Identifier: Apache-2.0
// Every status, once, in the order of STATUS, from a moment on: heard on core NATS, which costs the
// server nothing but may lose one. The sequence in each (Nats-Sequence) shows it: STATUS numbers
// all that it stores, and all of it is republished. What is missing is read from STATUS; where that
// is too much, the hub says that it lost some and goes on behind it. While none wants it, it
// listens to nothing.
//
//   OFF -> ASKING -> ON <-> FILLING        each may go back to OFF
//
// ASKING: subscribed, and the end of STATUS is asked for, from which on all is handed over.
#pragma once

#include "common/bus/jetstream/bus.h"

typedef enum HubState {
    HUB_OFF,
    HUB_ASKING,
    HUB_ON,
    HUB_FILLING,
    HUB_STATE_COUNT,
} HubState;

bool hub_state_move(HubState *state, HubState next);

typedef struct StatusHub StatusHub;

typedef struct StatusHubHandlers {
    // In order; the message lives during the call.
    void (*on_status)(void *ctx, const BusMessage *message, uint64_t sequence);
    void (*on_ready)(void *ctx); // status_hub_position() is known from now on
    void (*on_lost)(void *ctx);  // some before status_hub_position() were not handed over
} StatusHubHandlers;

StatusHub *status_hub_new(Bus *bus, const StatusHubHandlers *handlers, void *ctx);
void status_hub_want(StatusHub *hub, bool wanted);
void status_hub_tick(StatusHub *hub);                   // once a second, while it is wanted
bool status_hub_ready(const StatusHub *hub);            // ON or FILLING
uint64_t status_hub_position(const StatusHub *hub);     // the last that was handed over
uint64_t status_hub_filled_total(const StatusHub *hub); // read from STATUS, that were not heard
// It reads and listens no more; on_stopped in the call or later.
void status_hub_stop(StatusHub *hub, void (*on_stopped)(void *ctx), void *ctx);
void status_hub_free(StatusHub *hub); // after on_stopped, and when the bus is gone
