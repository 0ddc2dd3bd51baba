// SPDX-License-Identifier: Apache-2.0
// Health: stores in CONFIG that the vendor cannot be reached, and that it can again, so that an
// operator who asks why a mail waits gets an answer, from any process. Nothing is decided by it:
// mails wait and are tried as vendor.h says. Law: one entry for all replicas. It says down when a
// replica has found the vendor away, and up as soon as any replica has reached it after that; who
// is away alone changes nothing while another one sends. At most two entries a minute of one
// replica, whatever the vendor does.
//
// Killed between noticing and storing: the next process finds out for itself. Killed while the
// entry says down: the next process tries the vendor once without a mail, and stores what it finds.
#pragma once

#include "common/base/buf.h"
#include "common/bus/jetstream/bus.h"
#include "services/dispatcher/directory.h"
#include "services/dispatcher/vendor/vendor.h"

typedef enum HealthMove { HEALTH_STAY, HEALTH_DOWN, HEALTH_UP } HealthMove;

enum {
    HEALTH_HOLD_MS = 3000, // away for less is not worth an entry
    HEALTH_PAUSE_S = 30,   // between two entries that say down
};

// Pure: what this process must store. known: the entry as it is read here.
HealthMove health_decide(const VendorHealth *own, const ChannelState *known, int64_t now_us);

// The line for /readyz while the vendor is away: since when, why and how many mails wait.
void health_describe(const char *vendor, const VendorHealth *own, Buf *out);

typedef struct Health Health;

// All is borrowed. channel: the vendor's.
Health *health_new(
    Bus *bus, const Directory *directory, const Vendor *vendor, Channel channel,
    const char *instance);
// Every few seconds, once CONFIG has been read.
void health_tick(Health *health);
// on_stopped when no answer is awaited, perhaps at once; then health_free().
void health_stop(Health *health, void (*on_stopped)(void *ctx), void *ctx);
void health_free(Health *health);
