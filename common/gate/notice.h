// SPDX-License-Identifier: Apache-2.0
// Notice: one notification of a group, between its request and its events: who it is for, what the
// gate decided, which keys it needs. Lives in the group's arena.
#pragma once

#include "common/codec/hash.h"
#include "common/db/keyring.h"
#include "common/gate/gate_counters.h"
#include "common/gate/gate_records.h"
#include "common/model/rules/gate_trace.h"
#include "common/request/catalog.h"

typedef struct Notice {
    Request request; // a copy: the gate may change recipient, address and locale
    Str tenant;
    Str traceparent;
    const char *id;
    size_t part;  // of its group
    size_t first; // of a copy for a guardian: the notice that it is a copy of
    Str asked_locale;
    Str *owner_ids; // recipients that have the given address (gate_owners.h)
    size_t owner_count;
    const GatePerson *const *owners; // the facts of those that are not `person`
    size_t other_owners;
    const Record *record;     // NULL: an unknown recipient
    const GatePerson *person; // its facts; NULL: none
    bool has_address;         // `hash` is its hash, and request.to it or `sealed` holds it
    uint8_t hash[ADDRESS_HASH_LEN];
    Str sealed;                       // packed stentor.v1.Sealed; empty: the address is inline
    Counter *counters[GATE_COUNTERS]; // NULL: there is no such limit
    GateDecision decision;
    GuardianRouting routed; // it came to this recipient as a guardian
    char trace[GATE_TRACE_SIZE];
    DigestTarget digest;  // of GATE_GATHER
    KeyWant *key;         // seals its events; NULL: suppressed, nothing is sealed
    KeyWant *address_key; // opens `sealed`
} Notice;
