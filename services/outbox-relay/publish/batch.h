// SPDX-License-Identifier: Apache-2.0
// Batch: one claim's life. Claim (or take over a dead relay's) -> note the ids of requests ->
// publish -> mark what is stored, give back what is not, refuse what does not fit, release. Each
// arrow is a commit or JetStream's acks, and a relay that dies in between leaves a claim that
// another adopts when its time is over, with the same rows under the same ids.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/outbox/sql/relay_sql.h"

typedef struct Batch Batch;

// What all batches of a relay share. Borrowed until the last has ended.
typedef struct BatchContext {
    Bus *bus;
    DbPool *pool;
    const RelaySql *sql;
    const char *relay; // whose claim it is, for people
    int64_t lease_ms;
    bool begun;       // `begin` of a mapping with states was run (batch.c)
    int64_t rows_max; // of a claim (drain.c)
    bool stopping;    // nothing is tried again any more
    bool away;        // the database does not answer: said once (batch.c)
    int stuck;        // batches whose rows the table refuses to mark, one after the other
    int64_t repeats_quiet_until_us; // monotonic (batch.c)
} BatchContext;

typedef struct BatchQuery {
    const char *claim_id;
    bool adopt;             // an expired claim, whole; else pending rows
    int64_t after_position; // only rows above it, or BATCH_FROM_START
    int64_t rows;           // at most
    int64_t piece;          // of the table, to look at (RelaySql.edge)
} BatchQuery;

#define BATCH_FROM_START INT64_MIN

typedef struct BatchClaim {
    size_t rows;
    bool adopted;
    bool full;    // as many as were asked for
    bool cut;     // the table goes on behind `edge`
    int64_t edge; // how far it was looked at; BATCH_FROM_START: nothing was there, or not known
    bool keyed;   // rows have ordering keys: others may wait for them
    int64_t first_position; // of the claimed rows; 0: the mapping has none
    int64_t last_position;
} BatchClaim;

typedef struct BatchEnd {
    size_t published;
    size_t marked;
    size_t refused;
    size_t left; // given back, or left to who adopts the claim
} BatchEnd;

typedef struct BatchHandlers {
    // The claim is answered: the next batch may begin. err not NULL, or no rows: the batch is over,
    // and `ended` does not come.
    void (*claimed)(void *ctx, const BatchClaim *claim, const Error *err);
    void (*ended)(void *ctx, const BatchClaim *claim, const BatchEnd *end);
} BatchHandlers;

// Handlers come from the loop.
void batch_start(
    BatchContext *context, const BatchQuery *query, const BatchHandlers *handlers, void *ctx);
