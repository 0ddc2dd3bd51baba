// SPDX-License-Identifier: Apache-2.0
// RowPublisher: sends the events of committed accept rows to JetStream and marks the rows
// published, many rows by one statement. What cannot be published now is left: the sweep finds the
// row again (sweep.h).
#pragma once

#include "common/bus/events/frames.h"
#include "common/db/db.h"
#include "services/ingest/ingest_metrics.h"

enum {
    ROW_PUBLISHER_PENDING_MAX =
        8192, // events waiting for their ack; beyond it rows are left to the sweep
    // The same for a row with something beyond its tenant's share: the others' events wait behind
    // so many and not behind all of a flood.
    ROW_PUBLISHER_FLOOD_MAX = 2048,
    ROW_PUBLISHER_SWEEP_MAX = 32768, // the same for rows that the sweep has claimed: about 30 MB
    ROW_PUBLISHER_MARKS_MAX =
        100000, // published rows not yet marked; beyond it they are published again
    ROW_PUBLISHER_MARKS_BATCH = 1000,
    ROW_PUBLISHER_LEFT_MAX = 4096, // rows left whose ids are known; further ones are found by age
};

typedef struct RowPublisher RowPublisher;

RowPublisher *row_publisher_new(Bus *bus, DbPool *pool, IngestMetrics *metrics); // borrows all
void row_publisher_free(RowPublisher *publisher);
// NATS is there, and there is room for what has waited.
bool row_publisher_open(const RowPublisher *publisher);

typedef struct PublishedRow {
    int64_t accept_id;
    Str tenant;
    const Frame *frames;
    size_t count;
    bool lowered; // something of it is beyond its tenant's share
} PublishedRow;

// The frames are copied before it returns. false: left to the sweep, because NATS is away or more
// than pending_max events wait.
bool row_publisher_send(RowPublisher *publisher, size_t pending_max, const PublishedRow *row);
// Were rows left since the last call?
bool row_publisher_take_left(RowPublisher *publisher);
// Takes the ids of at most `max` rows that were left, the first of them first. Returns how many.
size_t row_publisher_take_ids(RowPublisher *publisher, int64_t *ret_ids, size_t max);
bool row_publisher_has_ids(const RowPublisher *publisher);
void row_publisher_tick(RowPublisher *publisher);       // every 50 ms: marks what was acknowledged
bool row_publisher_idle(const RowPublisher *publisher); // nothing on its way and nothing to mark
