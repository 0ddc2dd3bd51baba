// SPDX-License-Identifier: Apache-2.0
// Ack guard: an ack may go out only to the store that its message was read from. JetStream takes an
// ack by its sequence alone, and a server that came back with an older copy of its store gives
// sequences a second time: an ack of what was read before would acknowledge another
// message, which is then never seen again if its reader dies. So after the connection was lost,
// acks wait until the stream's message at the highest sequence read before has been seen to be the
// same still (one request); when it is not, or is gone, they are withheld: those messages come
// again after the ack wait and are found done. (worker_nats_test:
// an_ack_never_reaches_another_message, acks_outlive_a_connection_when_the_store_is_the_same)
#pragma once

#include "common/bus/jetstream/bus_internal.h"

typedef struct HeldAck {
    char *subject;
    unsigned breaks;
} HeldAck;

typedef struct Top {
    uint64_t sequence; // the highest that arrived; 0: none
    int64_t stored_at_us;
    unsigned breaks; // of the link when it arrived
} Top;

typedef struct AckGuard {
    Bus *bus;
    const char *stream;
    unsigned same_since;  // breaks of the link (link.h) since which the store is one and the same
    unsigned known_until; // ... up to this count of them
    Top top;              // of what is known to be of one store
    Top fresh;            // of what arrived since, and is not known yet
    bool mixed;           // ... over more than one connection
    bool asking;
    unsigned asked_at; // breaks when it was asked
    HeldAck *held;     // until it is known
    size_t held_count, held_cap;
} AckGuard;

void ack_guard_init(AckGuard *guard, Bus *bus, const char *stream);
void ack_guard_done(AckGuard *guard);
void ack_guard_arrived(AckGuard *guard, const AckSubject *ack); // each delivery, as it comes
// Acks now, or later, or never (counted as withheld). breaks: of the link when it arrived.
void ack_guard_ack(AckGuard *guard, const char *ack_subject, unsigned breaks);
void ack_guard_tick(AckGuard *guard); // asks when there is something to know
