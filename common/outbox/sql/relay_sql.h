// SPDX-License-Identifier: Apache-2.0
// RelaySql: generates the statements of one mapping; it runs none. Two steps: relay_sql_new gives
// `check`; relay_sql_bind reads its answer and reports a problem, or completes all other statements
// (keys are cast to the types of the catalogue, so that the application's indexes serve). Texts
// live as long as the RelaySql.
//
// The transactions of a batch, one a line (statements in this order):
//   lock, adopt                   now and then: a dead relay's rows
//   lock, begin, edge, claim      begin once, edge if there is one
//   plan, note                    requests only: before anything of it is published
//   (publish)
//   plan, mark, give_back, refuse, release       those with rows; release always
// A flush of status events: plan, feedback (or feedback_aside). Rows that it left: plan,
// pending_feedback; then plan, feedback_retry; or feedback_later. The gauge: plan, backlog.
// `plan` sets the planner's options for its transaction, independent of statistics; `lock` includes
// it. Every statement may be repeated after a commit whose answer was lost; claim and adopt then
// return nothing, and the rows are adopted once the claim expires.
#pragma once

#include "common/db/db.h"
#include "common/outbox/mapping/mapping.h"

// Columns of adopt's and claim's rows, in the order in which they are to be published.
enum {
    CLAIM_ROW_KEY = 0,  // text: the id as text
    CLAIM_ATTEMPT,      // int4: number of the row's request (1, 2 ...); 0 for events
    CLAIM_MADE_AT,      // timestamptz: when the request was recorded; else now, by Postgres's clock
    CLAIM_ORDERING_KEY, // text; NULL: none. With states: the state that it belongs to
    CLAIM_POSITION,     // int8; NULL: the mapping has none
    CLAIM_CREATED_AT,   // timestamptz; 0: the mapping has none
    CLAIM_SOURCE,       // text: of the database, the same in all rows (Row.source)
    CLAIM_FIELDS,       // from here: Mapping.columns, then Mapping.members, as text (RowValue)
};

// States of a request (stentor_outbox.requests.state).
// noted -> published -> retrying -> sent | failed; again: to be retried (`stentor outbox retry`).

enum { RELAY_KEEP_MAX = MOMENT_COUNT + 3, RELAY_RETRIES_MAX = 10 };

// How to read a column's text (row.h).
typedef enum ColumnKind {
    COLUMN_TEXT,
    COLUMN_JSON,  // json: any text that is JSON
    COLUMN_JSONB, // Postgres extracts its members (RowValue), and returns the whole only if needed
    COLUMN_NUMBER,
    COLUMN_BOOL
} ColumnKind;

typedef struct RelaySql {
    // No parameters. Rows for relay_sql_bind and relay_sql_problems.
    DbStatement check;

    // ---- complete after relay_sql_bind; note and feedback* only for requests (else NULL) ----

    // No parameters, no use of the result.
    DbStatement plan;
    // No parameters. Serialises the claims of several relays, so that each sees the others'.
    // Postgres waits; the statement's time-out bounds it.
    DbStatement lock;
    // With states only (else sql is NULL): the first time, records rows up to their state's
    // position as published; later nothing. No parameters, no rows. After `lock`, before the first
    // claim of a process.
    DbStatement begin;
    // Tables whose first order_by is their position (else sql is NULL): how far the following claim
    // of the same transaction reads. $1::int8 position (db_null: from the start), $2::int8 rows of
    // the table at most, pending or not. One row: int8 the last position read (NULL: no rows), int8
    // the number of rows.
    DbStatement edge;
    // Puts the first row that a claim with the same $1, $4 (1) and $5 would take aside.
    // $2::text reason, $3 is not used. One row: text row_key; none: there is none.
    DbStatement aside;
    // Takes over ONE expired claim: same rows, same attempts; it gets the new id. $1::text claim_id
    // (new, unique), $2::text relay (its name, for operators), $3::int8 claim_ms (how long it lasts
    // without renew). Rows: CLAIM_*.
    DbStatement adopt;
    // $1::text claim_id, $2::text relay, $3::int8 claim_ms, $4::int4 rows at most, $5::int8 only
    // rows whose position is above it (db_null: all). Nothing if there is a claim with this
    // claim_id. Rows: CLAIM_*. None: nothing was inserted into claims. Not taken: rows of any
    // claim, valid or expired; rows whose ordering key such a claim holds; rejected rows; of
    // requests without a `claimed` moment those whose last request is in progress or failed. A row
    // may be skipped (locked by the application), so rows before a reached position may still be
    // pending: scan from the start now and then.
    DbStatement claim;
    // Requests: records their ids; the answer counts, since a request that was recorded before
    // keeps its id and time. $1::text claim_id, $2::text[] row_key, $3::int4[] attempt, $4::text[]
    // notification_id, $5::timestamptz[] made_at. Rows: row_key text, attempt int4, notification_id
    // text, made_at timestamptz. No rows: the claim was lost (expired and adopted by another): drop
    // the batch, publish nothing of it. A request that was recorded but not published within 6 days
    // gets the new id and time.
    DbStatement note;
    // $1::text claim_id, $2::int8 claim_ms. One row: renewed; none: the claim is lost.
    DbStatement renew;
    // Rows that JetStream has stored. $1::text[] row_key, $2::int4[] attempt (0s for events). Rows,
    // at least one: int8 the number of changed rows; text row_key of a row that the application
    // holds, to be marked later (NULL: none). Needs no claim: the rows are stored. Events: the
    // moment `published`, the states' positions. Requests: they become published.
    DbStatement mark;
    // Rows that could not be published now: pending again. $1::text claim_id, $2::text[] row_key,
    // $3::text[] reason. One row: int8 the number of rows; 0 also if the claim was lost.
    DbStatement give_back;
    // Rows that do not fit. $1::text claim_id, $2::text[] row_key, $3::int4[] attempt, $4::text[]
    // reason. One row: int8 the number of rows; 0 also if the claim was lost.
    DbStatement refuse;
    // Ends the claim, but not after a `mark` of the same transaction that found held rows. $1::text
    // claim_id. One row if the claim was not lost.
    DbStatement release;
    // Requests: feedback from status events. $1::text[] notification_id (each once), $2::text[]
    // state
    // ('retrying', 'sent', 'failed'), $3::int4[] rank, $4::int4[] attempts (that have failed so
    // far), $5::text[] reason (NULL: none), $6::timestamptz[] at. A request takes only a higher
    // rank than it has (0 at first): give all statuses that mean "sent" the same one, and each
    // further retry a higher one. Unknown ids are ignored. The row gets the moment if the request
    // is its latest. One row: int8 requests changed, int8 rows written. It waits for no lock of the
    // application: a row that another session holds is left in stentor_outbox.pending_feedback.
    DbStatement feedback;
    // The same parameters and answer, but the application's table is not touched: all its rows are
    // left in pending_feedback.
    DbStatement feedback_aside;
    // Requests whose rows are to be written now. $1::int4 at most. Rows: row_key text, attempt
    // int4.
    DbStatement pending_feedback;
    // Writes them. $1::text[] row_key, $2::int4[] attempt. One row: int8 rows written, int8 still
    // held by another session: retried a second later.
    DbStatement feedback_retry;
    // Their table rejects one. $1::text row_key, $2::int4 attempt, $3::text reason. One row: bool
    // whether it was the last try and the row is put aside now; else it waits, twice as long each
    // time.
    DbStatement feedback_later;
    // $1::int8 count at most, $2::int8 position above which to count (db_null: all). One row: int8
    // pending rows that are not published (those of a claim too, unless `claimed` changes them),
    // timestamptz created_at of the oldest (0: none), int8 claims, int8 refused rows in
    // stentor_outbox.rejected_rows (at most the first parameter). A scan: not for every second.
    DbStatement backlog;
    // Requests (else sql is NULL): what failed and what is retried. $1::int8 failed rows counted at
    // most. Rows: int4 0 and int8 the failed rows of the table; then for each number of failed
    // attempts, up to RELAY_RETRIES_MAX (which counts all above it too), int4 the number and int8
    // how many requests are retried after so many. A scan of the mapping's requests, and of the
    // table where no index has failed rows: seldom.
    DbStatement tally;
    // Housekeeping, each its own transaction, without `plan`: $1::int4 rows at most. One row: int8
    // deleted. Run again soon when it equals the limit.
    DbStatement keep[RELAY_KEEP_MAX];
    int keep_count;
    ColumnKind kinds[MAPPING_COLUMNS_MAX]; // of Mapping.columns

    // ---- for the command line ----

    // The claim's scan of the table, for EXPLAIN: a Sort or a Seq Scan in it means that no index
    // serves it; index_hint is a fitting one.
    const char *scan;
    const char *index_hint;
    // Rows that failed or were rejected and wait for an operator. $1::int4 at most. Rows: row_key
    // text, reason text, at timestamptz (0: unknown). Requests whose row shows it are found in the
    // table, others in stentor_outbox.requests; events: NULL.
    DbStatement failed;
    // Retries rows. $1::text[] row_key, $2::bool also rows in progress or sent (they may be sent
    // twice). Rows: row_key text of those that will be claimed again.
    DbStatement retry;

    const Mapping *mapping; // borrowed
    struct Wanted *wanted;  // private, like the rest
    size_t wanted_count;
    Arena *arena;
} RelaySql;

RelaySql *relay_sql_new(const Mapping *mapping); // borrows the mapping
void relay_sql_free(RelaySql *sql);              // NULL-safe
// Reads check's answer (binary format). ERROR_CONFIG with the first problem: "column 'x' of table
// 'public.email_outbox' is missing (mapping field moments.sent.x)". May be called again (after a
// reconnect, with a new check): the texts do not change while the types do not.
bool relay_sql_bind(RelaySql *sql, const PGresult *check, Error *err);
// All problems, for operators: texts in `arena`, *ret_problems of the returned length; 0: none.
size_t relay_sql_problems(
    const RelaySql *sql, const PGresult *check, Arena *arena, Str **ret_problems);
