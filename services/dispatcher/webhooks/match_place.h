// SPDX-License-Identifier: Apache-2.0
// Where the consumer of STATUS stands. Closed, its filter lets nothing through: a status costs
// nothing then. Opened, it is made again and begins at what was stored since a time.
//
// Killed between two of its steps: the consumer is missing, or begins at that time already. Whose
// turn it is next looks where it stands, and goes on (test_webhook_crash.py).
#pragma once

#include <jansson.h>

#include "common/bus/jetstream/bus.h"

typedef struct MatchPlace {
    bool missing, closed;
    int64_t unacked, wait_ms; // what was read and not acked; for how long it is waited for
    json_t *config;           // as the server has it; NULL: it is missing
} MatchPlace;

// The answer to CONSUMER.INFO. false: it does not say. match_place_done in any case.
bool match_place_read(Str reply, const Error *err, MatchPlace *ret);
void match_place_done(MatchPlace *place);

// Accounts of an earlier version do not let it be moved: it is read from as it stands, and
// the process is ready (test_webhook_rights.py).
void match_place_spare(Bus *bus);
typedef void (*MatchPlaceMoved)(void *ctx, const Error *err);
void match_place_close(Bus *bus, const MatchPlace *place, MatchPlaceMoved on_moved, void *ctx);
// from_us: nothing that was stored before is read.
void match_place_open(
    Bus *bus, const MatchPlace *place, int64_t from_us, MatchPlaceMoved on_moved, void *ctx);
