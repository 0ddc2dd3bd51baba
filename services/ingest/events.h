// SPDX-License-Identifier: Apache-2.0
// Events: an accepted request becomes the two events that tell of it: REQUEST (or, for a later
// time, DEFERRED carrying the request) and STATUS `queued` (or `scheduled`). Personal data is
// sealed here and nowhere later. Pure but for nonces.
#pragma once

#include "common/bus/frames.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "services/ingest/request.h"

enum { EVENTS_PER_NOTIFICATION = 2 };

// Everything that is decided at accept time, beside the request itself.
typedef struct Acceptance {
    Str tenant;
    const char *id; // "ntf_..."
    int64_t accepted_at_us;
    Str traceparent;
    const uint8_t *address_hash; // ADDRESS_HASH_LEN bytes
    DataKey *key;                // the recipient's
} Acceptance;

// What the caller is told, and what the STATUS says: queued or scheduled.
Status events_status(const Request *request);

// Fills two frames; everything they point to lives in `arena`.
bool events_build(
    const Request *request, const Acceptance *acceptance, Arena *arena,
    Frame ret[EVENTS_PER_NOTIFICATION], Error *err);
