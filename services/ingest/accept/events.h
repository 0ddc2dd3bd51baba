// SPDX-License-Identifier: Apache-2.0
// Events: an accepted request becomes its events: REQUEST and STATUS `queued`; for
// what waits (a schedule, quiet hours, a limit, a digest) DEFERRED carrying the request and STATUS
// `scheduled`; for what the gate refused STATUS `suppressed` alone. Before them, for what
// supersedes earlier ones of its subject, the cancellation on DEFERRED. Personal data is sealed
// here and nowhere later. Pure but for nonces.
#pragma once

#include "common/bus/events/frames.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/request/catalog.h"

enum { EVENTS_PER_NOTIFICATION = 3 }; // at most

// Everything that is decided at accept time, beside the request itself.
typedef struct Acceptance {
    Str tenant;
    const char *id; // "ntf_..."
    int64_t accepted_at_us;
    Str traceparent;
    const uint8_t *address_hash; // ADDRESS_HASH_LEN bytes; NULL: there is no address (suppressed)
    DataKey *key;                // the recipient's; NULL when suppressed
    GateDecision decision;
    const char *gate_trace; // NULL: none
    DigestTarget digest;    // of GATE_GATHER
    Str time_zone;          // the recipient's; empty: none is known
    Priority lane;          // that a request goes out on; PRIORITY_NONE: its own priority's
    bool packed;            // variables are compressed before they are sealed
} Acceptance;

// The status in the answer and in the status event: queued, scheduled or suppressed.
Status events_status(const GateDecision *decision);

// Fills one to three frames; everything they point to lives in `arena`.
bool events_build(
    const Request *request, const Acceptance *acceptance, Arena *arena,
    Frame ret[EVENTS_PER_NOTIFICATION], size_t *ret_count, Error *err);
