// SPDX-License-Identifier: Apache-2.0
// Accept: what a 202 stands for. Submissions (one HTTP request, one command) are gathered and
// committed together: the gate decides them (gate_run.h), then one look-up of keys, one
// transaction, one fsync; then all are answered, and their events are published from memory. A
// group closes when no commit is in flight, or after 2 ms, or at 500 notifications; two commits
// may be in flight. Tenants take turns in it, so whoever sends little is in the next one. Not
// here: checking requests (request.h) and publishing (row_publisher.h).
#pragma once

#include "common/codec/hash.h"
#include "common/db/keyring.h"
#include "common/model/rules/fair_share.h"
#include "common/model/suppressions.h"
#include "common/request/catalog.h"
#include "common/request/request.h"
#include "common/trace/tracer.h"
#include "services/ingest/accept/row_publisher.h"
#include "services/ingest/ingest_metrics.h"

enum {
    ACCEPT_WAITING_MAX = 20000,                  // notifications waiting, those in flight included
    ACCEPT_WAITING_BYTES_MAX = 64 * 1024 * 1024, // of their bodies
    ACCEPT_TENANT_SHARE = 4,                     // one tenant may have a quarter of both waiting
    ACCEPT_GROUP_MAX = 500,                      // a group closes at this many notifications ...
    ACCEPT_GROUP_BYTES = 2 * 1024 * 1024, // ... or bytes; the submission that passes it is the last
    ACCEPT_GROUPS_MAX = 2,
    ACCEPT_GATHER_MS = 2,
    ACCEPT_PATIENCE_MS = 5000, // how long Postgres may be away before a submission is refused
};

typedef struct Accept Accept;

typedef enum AcceptVerdict {
    ACCEPT_STORED,      // committed now
    ACCEPT_REPLAYED,    // the same key and body was answered before: the same answer again
    ACCEPT_OTHER_BODY,  // the key was used with another body
    ACCEPT_UNAVAILABLE, // not committed (Postgres away); perhaps committed when a connection broke
                        // in the commit itself
} AcceptVerdict;

typedef struct AcceptResult {
    AcceptVerdict verdict;
    int status;  // of the stored answer
    Str answer;  // valid during the call
    Error error; // of ACCEPT_UNAVAILABLE
} AcceptResult;

typedef void (*AcceptDone)(void *ctx, const AcceptResult *result);

// Filled in by the caller, whose it stays until `done`. All it points to must live until then.
typedef struct Submission {
    Str tenant;
    Str scope;
    Str key; // idempotency key; empty: none
    uint8_t body_hash[SHA256_LEN];
    Str traceparent;
    const Request *requests; // checked and frozen
    size_t count;
    bool single;  // the answer is one object, not a list
    size_t bytes; // of the body, for the bound on memory
    AcceptDone done;
    void *ctx;
    // accept's own:
    struct Submission *next;
    struct Submission *followers; // repeats that came while this one was in flight
    int64_t queued_at_us;
    size_t part; // of its group
    Str flight;  // its name among the keys in flight
    Str answer;
} Submission;

typedef struct AcceptOptions {
    uv_loop_t *loop;
    DbPool *pool;
    Keyring *keyring;
    const Catalog *catalog;           // tenants' settings
    const Suppressions *suppressions; // NULL: none
    RowPublisher *publisher;
    FairShare *share; // of the lanes
    IngestMetrics *metrics;
    Tracer *tracer; // NULL: no traces
    bool packed;    // variables are compressed before they are sealed, and accept rows
    void (*on_broken)(
        void *ctx, const Error *err); // only an operator can fix it (a table or a right is missing)
    void *ctx;
} AcceptOptions;

Accept *accept_new(const AcceptOptions *options); // borrows all parts
// `done` comes later from the loop, exactly once. false, ERROR_TRANSIENT: too many wait, in all or
// of this tenant; `done` is not called.
bool accept_submit(Accept *accept, Submission *submission, Arena *arena, Error *err);
void accept_tick(Accept *accept);       // every 50 ms: retries, and refuses what waited too long
bool accept_idle(const Accept *accept); // nothing waits and no commit is in flight
void accept_free(Accept *accept, void (*on_freed)(void *ctx), void *ctx); // only when idle
