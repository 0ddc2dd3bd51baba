// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/row_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/auth.h"
#include "common/base/crash.h"

// A row counts as published only when every event of it was acknowledged.
typedef struct Row {
    RowPublisher *publisher;
    int64_t accept_id;
    size_t waiting;
    bool failed;
    char tenant[TENANT_SIZE];
} Row;

typedef struct Mark {
    int64_t accept_id;
    char tenant[TENANT_SIZE];
} Mark;

struct RowPublisher {
    Bus *bus;
    DbPool *pool;
    IngestMetrics *metrics;
    size_t rows; // on their way
    bool left;   // a row was left to the sweep
    int64_t left_ids[ROW_PUBLISHER_LEFT_MAX];
    size_t left_count;
    Mark *marks;
    size_t mark_count;
    size_t mark_cap;
    size_t marking; // the first so many are in the statement that is in flight
};

// Repeating it changes nothing. Killed before it: the sweep publishes the row again, under the same
// event ids, which JetStream's duplicate window and every reader drop
// (tests/integration/faults/test_kill.py).
static const DbStatement MARK = {
    .name = "ingest_mark_published",
    .sql = "UPDATE ingest.accept_log SET published_at = now() "
           "WHERE accept_id = ANY ($1::int8[]) AND published_at IS NULL",
};

RowPublisher *row_publisher_new(Bus *bus, DbPool *pool, IngestMetrics *metrics)
{
    RowPublisher *p = xcalloc(1, sizeof *p);
    p->bus = bus;
    p->pool = pool;
    p->metrics = metrics;
    return p;
}

void row_publisher_free(RowPublisher *p)
{
    if (p == NULL) {
        return;
    }
    free(p->marks);
    free(p);
}

bool row_publisher_open(const RowPublisher *p)
{
    return bus_connected(p->bus) && bus_pending(p->bus) < ROW_PUBLISHER_FLOOD_MAX;
}

bool row_publisher_idle(const RowPublisher *p)
{
    return p->rows == 0 && p->mark_count == 0;
}

static void add_mark(RowPublisher *p, const Row *row)
{
    if (p->mark_count == ROW_PUBLISHER_MARKS_MAX) {
        return;
    }
    if (p->mark_count == p->mark_cap) {
        p->mark_cap = p->mark_cap == 0 ? 64 : p->mark_cap * 2;
        p->marks = xrealloc(p->marks, p->mark_cap * sizeof *p->marks);
    }
    Mark *mark = &p->marks[p->mark_count++];
    mark->accept_id = row->accept_id;
    memcpy(mark->tenant, row->tenant, sizeof mark->tenant);
}

static void leave(RowPublisher *p, int64_t accept_id)
{
    p->left = true;
    if (p->left_count < ROW_PUBLISHER_LEFT_MAX) {
        p->left_ids[p->left_count++] = accept_id;
    }
}

size_t row_publisher_take_ids(RowPublisher *p, int64_t *ret_ids, size_t max)
{
    size_t count = p->left_count < max ? p->left_count : max;
    memcpy(ret_ids, p->left_ids, count * sizeof *ret_ids);
    p->left_count -= count;
    memmove(p->left_ids, p->left_ids + count, p->left_count * sizeof *p->left_ids);
    return count;
}

bool row_publisher_has_ids(const RowPublisher *p)
{
    return p->left_count > 0;
}

static void finish_row(Row *row)
{
    RowPublisher *p = row->publisher;
    CRASH_POINT_IF("ingest.published", !row->failed);
    if (row->failed) {
        leave(p, row->accept_id);
    } else {
        add_mark(p, row);
    }
    p->rows--;
    metric_set(p->metrics->unpublished, (double)p->rows);
    free(row);
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Row *row = ctx;
    row->failed = row->failed || err != NULL;
    metric_add(
        err == NULL ? row->publisher->metrics->published : row->publisher->metrics->publish_failed,
        1);
    if (--row->waiting == 0) {
        finish_row(row);
    }
}

bool row_publisher_send(RowPublisher *p, size_t pending_max, const PublishedRow *published)
{
    if (!bus_connected(p->bus) || bus_pending(p->bus) >= pending_max || published->count == 0) {
        leave(p, published->accept_id);
        return false;
    }
    Row *row = xcalloc(1, sizeof *row);
    row->publisher = p;
    row->accept_id = published->accept_id;
    row->waiting = published->count;
    (void)str_to_c(published->tenant, row->tenant, sizeof row->tenant);
    p->rows++;
    metric_set(p->metrics->unpublished, (double)p->rows);
    for (size_t i = 0; i < published->count; i++) {
        BusOut out = published->frames[i].out;
        out.slack = published->lowered;
        bus_publish(p->bus, &out, on_bus_acked, row);
    }
    return true;
}

bool row_publisher_take_left(RowPublisher *p)
{
    bool left = p->left;
    p->left = false;
    return left;
}

static void on_db_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    RowPublisher *p = ctx;
    if (err == NULL) {
        CRASH_POINT("ingest.marked");
        memmove(p->marks, p->marks + p->marking, (p->mark_count - p->marking) * sizeof *p->marks);
        p->mark_count -= p->marking;
    } // else they stay and are marked with the next tick
    p->marking = 0;
}

void row_publisher_tick(RowPublisher *p)
{
    if (p->marking > 0 || p->mark_count == 0 || !db_pool_ready(p->pool)) {
        return;
    }
    p->marking =
        p->mark_count < ROW_PUBLISHER_MARKS_BATCH ? p->mark_count : ROW_PUBLISHER_MARKS_BATCH;
    DbTxn *txn = db_txn_new(p->pool);
    db_txn_lazy_commit(
        txn); // a mark lost in a power cut is a row published again under the same ids
    DbArray *ids = db_array(db_txn_add(txn, &MARK, NULL), DB_I64);
    for (size_t i = 0; i < p->marking; i++) {
        db_push_int(ids, p->marks[i].accept_id);
        if (i == 0 || strcmp(p->marks[i].tenant, p->marks[i - 1].tenant) != 0) {
            db_txn_tenant(txn, str_from(p->marks[i].tenant));
        }
    }
    db_txn_submit(txn, on_db_marked, p);
}
