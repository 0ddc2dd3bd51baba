// SPDX-License-Identifier: Apache-2.0
// Facts about recipients on their way into PEOPLE: all keys in one statement, the events sealed
// and published together, their acks, and then a short wait for the projection.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/keyring.h"
#include "common/recipients/people_wait.h"
#include "services/gateway/recipients/recipient_events.h"

enum { PEOPLE_BUS_MAX = 16384 }; // publishes under way beyond which no more are started

typedef struct RecipientsWrite {
    Bus *bus;
    Keyring *keyring;
    PeopleWait *wait;
    Arena *arena; // must live until done
    Str tenant;
    Str said_by;
    PersonFact *facts; // at least one; each gets its error
    size_t count;
    bool guarded;      // stored only while `replaces` is the last event of the tenant's people
    uint64_t replaces; // 0: there is none
    // From the loop, once. err: nothing was published (the keys could not be had, NATS is away).
    // Otherwise each fact has its own error; the stored ones are usually in the tables by now.
    void (*done)(void *ctx, const Error *err);
    void *ctx;
    // What became of a guarded one:
    bool lost;         // nothing was stored: another event is the last one
    uint64_t there;    // that one
    uint64_t sequence; // the last that was stored; 0: none
    // Its own:
    KeyWant *wants;
    size_t want_count;
    size_t waiting;
    int64_t now_us;
} RecipientsWrite;

// The first fact of a guarded write goes alone, and the others once it is stored: what follows it
// cannot be lost any more. Killed in between, the first one stands: a repeat sees a new ETag.
void recipients_write(RecipientsWrite *write);
// NULL, or why nothing can be written now.
const char *recipients_write_unready(const Bus *bus);
