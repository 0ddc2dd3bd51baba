// SPDX-License-Identifier: Apache-2.0
// One transaction through libpq's pipeline: sends its statements with what must be prepared for
// them, and matches the answers in order. Knows nothing of sockets and loops: that is connection.c.
// Private to common/db. Law: there is no BEGIN and no COMMIT. A pipeline up to its sync is one
// implicit transaction: Postgres commits at the sync, or has rolled everything back at the first
// error, and needs no word from us for either.
#pragma once

#include "common/db/line/prepared.h"
#include "common/db/line/session.h"

enum { RESULT_NONE = -1, RESULT_SETUP = -2 };

// One answer that is awaited, in the order in which it was sent.
typedef struct Step {
    const DbStatement *statement;
    unsigned prepared_serial; // > 0: the answer to a prepare
    int result_index;         // a statement of the caller's; else RESULT_NONE, RESULT_SETUP
} Step;

typedef struct Pipeline {
    PreparedSet prepared;
    Session session;
    DbTxn *txn;
    Step *steps; // in the transaction's arena
    int step_count;
    int step_at;
    Error error; // the transaction's first
    bool stale;  // the connection is to be made again
} Pipeline;

void pipeline_init(Pipeline *line); // for each new connection
void pipeline_done(Pipeline *line);
// false: half of it may stand in libpq's buffer, and the connection is of no further use.
bool pipeline_send(Pipeline *line, PGconn *pg, DbTxn *txn, Error *err);

typedef enum Progress { PROGRESS_WAIT, PROGRESS_DONE, PROGRESS_LOST } Progress;
Progress pipeline_read(Pipeline *line, PGconn *pg); // takes what has arrived; never blocks
// After PROGRESS_DONE: true when it was committed.
bool pipeline_finish(Pipeline *line, Error *ret_err);
