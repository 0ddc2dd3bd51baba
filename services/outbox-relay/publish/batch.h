// SPDX-License-Identifier: Apache-2.0
// Batch: one claim from start to end. Claim (or adopt a dead relay's) -> record the ids of requests
// -> publish -> mark stored rows, give back others, reject those that do not fit, release. Each
// arrow is a commit or JetStream's acks. A relay that dies in between leaves a claim that another
// adopts when it expires, with the same rows and the same ids.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/outbox/sql/relay_sql.h"

typedef struct Batch Batch;

// Shared by all batches of a relay. Borrowed until the last has ended.
typedef struct BatchContext {
    Bus *bus;
    DbPool *pool;
    const RelaySql *sql;
    const char *relay;  // the relay's name, for operators
    const char *intake; // what stands before an event's subject on its way to ingest; "": nothing
    int64_t lease_ms;
    bool begin_done;                // `begin` of a mapping with states was run (batch.c)
    int64_t rows_max;               // of a claim (drain.c)
    bool stopping;                  // nothing is retried
    bool away;                      // the database does not answer; logged once (batch.c)
    int stuck;                      // batches whose marks the table rejects, one after the other
    int64_t repeats_quiet_until_us; // monotonic (batch.c)
} BatchContext;

typedef struct BatchQuery {
    const char *claim_id;
    bool adopt;             // an expired claim, whole; else pending rows
    int64_t after_position; // only rows above it, or BATCH_FROM_START
    int64_t rows;           // at most
    int64_t piece;          // rows of the table to read (RelaySql.edge)
} BatchQuery;

#define BATCH_FROM_START INT64_MIN

typedef struct BatchClaim {
    size_t rows;
    bool adopted;
    bool full;              // as many as were asked for
    bool cut;               // the table has more rows behind `edge`
    int64_t edge;           // last position read; BATCH_FROM_START: no rows, or not known
    bool keyed;             // rows have ordering keys: others may wait for them
    int64_t first_position; // of the claimed rows; 0: the mapping has none
    int64_t last_position;
} BatchClaim;

typedef struct BatchEnd {
    size_t published;
    size_t marked;
    size_t refused;
    size_t left; // given back, or left to the relay that adopts the claim
} BatchEnd;

typedef struct BatchHandlers {
    // The claim is answered: the next batch may start. err not NULL, or no rows: the batch is over,
    // and `ended` is not called.
    void (*claimed)(void *ctx, const BatchClaim *claim, const Error *err);
    void (*ended)(void *ctx, const BatchClaim *claim, const BatchEnd *end);
} BatchHandlers;

// Handlers are called from the loop.
void batch_start(
    BatchContext *context, const BatchQuery *query, const BatchHandlers *handlers, void *ctx);
