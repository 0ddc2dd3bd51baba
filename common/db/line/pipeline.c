// SPDX-License-Identifier: Apache-2.0
#include "common/db/line/pipeline.h"

#include "common/db/errors.h"

void pipeline_init(Pipeline *line)
{
    *line = (Pipeline){0};
    prepared_init(&line->prepared);
}

void pipeline_done(Pipeline *line)
{
    prepared_done(&line->prepared);
}

// ---- sending ----

static void expect(Pipeline *line, const DbStatement *statement, unsigned serial, int result_index)
{
    line->steps[line->step_count++] = (Step){statement, serial, result_index};
}

static bool send_statement(
    Pipeline *line, PGconn *pg, const DbParams *p, int result_index, Error *err)
{
    bool fresh = false;
    Prepared *prepared = prepared_get(&line->prepared, p, &fresh, err);
    if (prepared == NULL) {
        return false;
    }
    if (fresh) {
        if (!PQsendPrepare(
                pg, prepared->name, p->statement->sql, prepared->count, prepared->types)) {
            return db_error_connection(pg, p->statement->name, err);
        }
        expect(line, p->statement, prepared->serial, RESULT_NONE);
    }
    const char *values[DB_PARAMS_MAX];
    int lengths[DB_PARAMS_MAX];
    int formats[DB_PARAMS_MAX];
    for (int i = 0; i < p->count; i++) {
        values[i] = p->items[i].value;
        lengths[i] = p->items[i].length;
        formats[i] = 1;
    }
    if (!PQsendQueryPrepared(pg, prepared->name, p->count, values, lengths, formats, 1)) {
        return db_error_connection(pg, p->statement->name, err);
    }
    expect(line, p->statement, 0, result_index);
    return true;
}

bool pipeline_send(Pipeline *line, PGconn *pg, DbTxn *txn, Error *err)
{
    line->txn = txn;
    // Each statement, and the setup, may be prepared first.
    line->steps = arena_array(txn->arena, 2 * ((size_t)txn->count + 1), sizeof *line->steps);
    line->step_count = 0;
    line->step_at = 0;
    line->stale = false;
    error_clear(&line->error);
    const DbParams *setup = session_setup(&line->session, txn, PQbackendPID(pg));
    if (setup != NULL && !send_statement(line, pg, setup, RESULT_SETUP, err)) {
        return false;
    }
    for (int i = 0; i < txn->count; i++) {
        if (!send_statement(line, pg, txn->statements[i], i, err)) {
            return false;
        }
    }
    if (!PQpipelineSync(pg)) {
        return db_error_connection(pg, "send", err);
    }
    return true;
}

// ---- answers ----

static void keep_result(Pipeline *line, PGresult *res)
{
    if (line->step_at >= line->step_count) {
        PQclear(res);
        return;
    }
    const Step *step = &line->steps[line->step_at];
    if (step->prepared_serial > 0) {
        Prepared *entry = map_get(line->prepared.by_name, str_from(step->statement->name));
        if (entry != NULL && entry->serial == step->prepared_serial) {
            entry->confirmed = true;
        }
    }
    if (step->result_index == RESULT_SETUP) {
        session_read(&line->session, res);
    }
    if (step->result_index < 0) {
        PQclear(res);
        return;
    }
    PQclear(line->txn->results[step->result_index]);
    line->txn->results[step->result_index] = res;
}

static void take_result(Pipeline *line, PGresult *res)
{
    switch (PQresultStatus(res)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        keep_result(line, res);
        return;
    case PGRES_PIPELINE_ABORTED: // a consequence of the error before it
        break;
    default:
        if (line->error.kind == ERROR_NONE) {
            const char *name = line->step_at < line->step_count
                                   ? line->steps[line->step_at].statement->name
                                   : "commit";
            db_error_result(res, name, &line->error);
        }
        line->stale = line->stale || db_error_is_stale(res);
        break;
    }
    PQclear(res);
}

// In pipeline mode each command gives its result and a NULL; the end gives one PGRES_PIPELINE_SYNC.
Progress pipeline_read(Pipeline *line, PGconn *pg)
{
    bool last_was_null = false;
    while (!PQisBusy(pg)) {
        PGresult *res = PQgetResult(pg);
        if (res == NULL) {
            if (last_was_null || PQstatus(pg) == CONNECTION_BAD) {
                return PROGRESS_LOST;
            }
            last_was_null = true;
            line->step_at++;
            continue;
        }
        last_was_null = false;
        if (PQresultStatus(res) == PGRES_PIPELINE_SYNC) {
            PQclear(res);
            return PROGRESS_DONE;
        }
        take_result(line, res);
    }
    return PROGRESS_WAIT;
}

// What a failed transaction was to prepare and the server did not confirm is prepared again
// next time.
static void forget_unconfirmed(Pipeline *line)
{
    for (int i = 0; i < line->step_count; i++) {
        const Step *step = &line->steps[i];
        Prepared *entry = map_get(line->prepared.by_name, str_from(step->statement->name));
        if (step->prepared_serial > 0 && entry != NULL && !entry->confirmed) {
            prepared_forget(&line->prepared, step->statement);
        }
    }
}

bool pipeline_finish(Pipeline *line, Error *ret_err)
{
    bool done = line->error.kind == ERROR_NONE;
    if (!done) {
        forget_unconfirmed(line);
        *ret_err = line->error;
    }
    session_end(&line->session, line->txn, done);
    line->txn = NULL;
    line->steps = NULL;
    line->step_count = 0;
    return done;
}
