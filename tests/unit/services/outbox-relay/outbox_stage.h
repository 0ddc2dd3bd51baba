// SPDX-License-Identifier: Apache-2.0
// A real application's table with one of the shipped mappings over it, and the generated statements
// run as a relay would. Included behind cmocka.h.
#pragma once

#include "common/base/clock.h"
#include "common/codec/hash.h"
#include "common/db/migrate.h"
#include "common/outbox/sql/relay_sql.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { STAGE_KEYS_MAX = 4096, CLAIM_MS = 30000 };

typedef struct Stage {
    Fixture *fx;
    Mapping *mapping;
    RelaySql *sql;
} Stage;

// What one claim has brought: keys and attempts in order. The answer's rows stay readable.
typedef struct Batch {
    Answer answer;
    const PGresult *rows;
    int count;
} Batch;

static inline Str stage_file(const char *name, char *out, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/deploy/examples/outbox/%s.json", STENTOR_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, size, file);
    fclose(file);
    return str_of(out, len);
}

static inline void stage_install(void)
{
    static const char *const schemas[] = {"stentor_outbox", NULL};
    MigrateJob job = {
        .url = test_url(),
        .folder = STENTOR_SOURCE_DIR "/migrations",
        .schemas = schemas,
        .superuser_may = true};
    MigrateReport report;
    Error err = {0};
    if (!db_migrate(&job, &report, &err)) {
        fail_msg("%s", err.text);
    }
}

static inline bool stage_bind(Stage *stage, Error *err)
{
    Answer answer = {0};
    run_statement(stage->fx, &stage->sql->check, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("check: %s", answer.err.text);
    }
    bool ok = relay_sql_bind(stage->sql, answer.rows[0], err);
    answer_clear(&answer);
    return ok;
}

static inline Stage *stage_open_json(Str json)
{
    Stage *stage = calloc(1, sizeof *stage);
    Error err = {0};
    stage->fx = fixture_new(&(DbPoolOptions){.url = test_url(), .connections = 1});
    stage->mapping = mapping_read(json, &err);
    if (stage->mapping == NULL) {
        fail_msg("%s", err.text);
    }
    stage->sql = relay_sql_new(stage->mapping);
    return stage;
}

// The tables, fresh; the mapping of that name, bound.
static inline Stage *stage_new(const char *ddl, const char *mapping)
{
    char json[8192];
    Error err = {0};
    stage_install();
    Stage *stage = stage_open_json(stage_file(mapping, json, sizeof json));
    admin_exec(stage->fx->admin, ddl);
    admin_exec(
        stage->fx->admin, "TRUNCATE stentor_outbox.claims, stentor_outbox.requests,"
                          " stentor_outbox.rejected_rows, stentor_outbox.published, "
                          "stentor_outbox.initialised_mappings,"
                          " stentor_outbox.pending_feedback");
    if (!stage_bind(stage, &err)) {
        fail_msg("%s", err.text);
    }
    return stage;
}

static inline void stage_free(Stage *stage)
{
    fixture_free(stage->fx);
    relay_sql_free(stage->sql);
    mapping_free(stage->mapping);
    free(stage);
}

static inline void stage_sql(Stage *stage, const char *sql)
{
    admin_exec(stage->fx->admin, sql);
}

// What a relay does before its first claim.
static inline void stage_begin(Stage *stage)
{
    Answer answer = {0};
    run_statement(stage->fx, &stage->sql->begin, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    answer_clear(&answer);
}

// The query's one value.
#define assert_sql(stage, wanted, sql)                                                             \
    assert_string_equal(admin_value((stage)->fx->admin, (sql)), (wanted))

// ---- claim ----

static inline DbTxn *stage_claim_txn(
    DbPool *pool, const RelaySql *sql, const char *claim_id, int limit, int64_t after)
{
    DbTxn *txn = db_txn_new(pool);
    const DbStatement *statements[] = {&sql->adopt, &sql->claim};
    db_txn_add(txn, &sql->lock, NULL);
    for (int i = 0; i < 2; i++) {
        DbParams *p = db_txn_add(txn, statements[i], NULL);
        db_text(p, str_from(claim_id));
        db_text(p, STR("relay-of-the-test"));
        db_i64(p, CLAIM_MS);
        if (i == 1) {
            db_i32(p, limit);
            after > 0 ? db_i64(p, after) : db_null(p);
        }
    }
    return txn;
}

static inline void batch_read(Batch *batch)
{
    if (batch->answer.err.kind != ERROR_NONE) {
        fail_msg("%s", batch->answer.err.text);
    }
    int adopted = db_rows(batch->answer.rows[1]);
    int claimed = db_rows(batch->answer.rows[2]);
    assert_true(adopted == 0 || claimed == 0);
    batch->rows = batch->answer.rows[adopted > 0 ? 1 : 2];
    batch->count = adopted + claimed;
}

static inline void stage_claim_after(
    Stage *stage, const char *claim_id, int limit, int64_t after, Batch *ret)
{
    *ret = (Batch){.count = 0};
    DbTxn *txn = stage_claim_txn(stage->fx->pool, stage->sql, claim_id, limit, after);
    submit_and_wait(stage->fx, txn, &ret->answer);
    batch_read(ret);
}

static inline void stage_claim(Stage *stage, const char *claim_id, int limit, Batch *ret)
{
    stage_claim_after(stage, claim_id, limit, 0, ret);
}

static inline void batch_done(Batch *batch)
{
    answer_clear(&batch->answer);
    *batch = (Batch){.count = 0};
}

static inline Str batch_key(const Batch *batch, int row)
{
    return db_get_text(batch->rows, row, CLAIM_ROW_KEY);
}

static inline int batch_attempt(const Batch *batch, int row)
{
    return (int)db_get_int(batch->rows, row, CLAIM_ATTEMPT);
}

// Claims and answers how many rows came.
static inline int stage_claims(Stage *stage, const char *claim_id, int limit)
{
    Batch batch;
    stage_claim(stage, claim_id, limit, &batch);
    int count = batch.count;
    batch_done(&batch);
    return count;
}

// ---- what follows ----

static inline int64_t stage_run(Stage *stage, DbTxn *txn, int result)
{
    Answer answer = {0};
    submit_and_wait(stage->fx, txn, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    int64_t value = db_rows(answer.rows[result]) == 0 ? -1 : db_get_int(answer.rows[result], 0, 0);
    answer_clear(&answer);
    return value;
}

static inline Str stage_id(const Batch *batch, int row, char *out, size_t size)
{
    Str key = batch_key(batch, row);
    snprintf(out, size, "ntf_%.*s_%d", (int)key.len, key.ptr, batch_attempt(batch, row));
    return str_from(out);
}

// Notes all rows of the batch with made_at and answers how many are noted. ret_made (may be NULL):
// the first one's stored time.
static inline int stage_note_at(
    Stage *stage, const char *claim_id, const Batch *batch, int64_t made_at_us, int64_t *ret_made)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->note, NULL);
    db_text(p, str_from(claim_id));
    DbArray *arrays[] = {
        db_array(p, DB_TEXT), db_array(p, DB_I32), db_array(p, DB_TEXT), db_array(p, DB_TIME)};
    for (int i = 0; i < batch->count; i++) {
        char id[200];
        db_push_text(arrays[0], batch_key(batch, i));
        db_push_int(arrays[1], batch_attempt(batch, i));
        db_push_text(arrays[2], stage_id(batch, i, id, sizeof id));
        db_push_time(arrays[3], made_at_us);
    }
    Answer answer = {0};
    submit_and_wait(stage->fx, txn, &answer);
    if (answer.err.kind != ERROR_NONE) {
        fail_msg("%s", answer.err.text);
    }
    int noted = db_rows(answer.rows[0]);
    if (ret_made != NULL && noted > 0) {
        *ret_made = db_get_time(answer.rows[0], 0, 3);
    }
    answer_clear(&answer);
    return noted;
}

static inline int stage_note(Stage *stage, const char *claim_id, const Batch *batch)
{
    return stage_note_at(stage, claim_id, batch, clock_now_us(), NULL);
}

// WriteBack rows [from, to) of the batch.
static inline int64_t stage_mark(Stage *stage, const Batch *batch, int from, int to)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    db_txn_add(txn, &stage->sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &stage->sql->mark, NULL);
    DbArray *keys = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I32);
    for (int i = from; i < to; i++) {
        db_push_text(keys, batch_key(batch, i));
        db_push_int(attempts, batch_attempt(batch, i));
    }
    return stage_run(stage, txn, 1);
}

static inline bool stage_release(Stage *stage, const char *claim_id)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    db_text(db_txn_add(txn, &stage->sql->release, NULL), str_from(claim_id));
    return stage_run(stage, txn, 0) >= 0;
}

static inline int64_t stage_give_back(
    Stage *stage, const char *claim_id, const Batch *batch, int row, const char *reason)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->give_back, NULL);
    db_text(p, str_from(claim_id));
    db_push_text(db_array(p, DB_TEXT), batch_key(batch, row));
    db_push_text(db_array(p, DB_TEXT), str_from(reason));
    return stage_run(stage, txn, 0);
}

static inline int64_t stage_refuse(
    Stage *stage, const char *claim_id, const Batch *batch, int row, const char *reason)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->refuse, NULL);
    db_text(p, str_from(claim_id));
    db_push_text(db_array(p, DB_TEXT), batch_key(batch, row));
    db_push_int(db_array(p, DB_I32), batch_attempt(batch, row));
    db_push_text(db_array(p, DB_TEXT), str_from(reason));
    return stage_run(stage, txn, 0);
}

// A batch's whole good life: note, mark, release.
static inline void stage_publish(Stage *stage, const char *claim_id, const Batch *batch)
{
    if (mapping_is_request(stage->mapping)) {
        assert_int_equal(stage_note(stage, claim_id, batch), batch->count);
    }
    assert_int_equal(stage_mark(stage, batch, 0, batch->count), batch->count);
    assert_true(stage_release(stage, claim_id));
}

typedef struct RowFeedback {
    const char *id;
    const char *state;
    int rank;
    int attempts;
    const char *reason; // NULL: none
    const char *at;     // RFC 3339
} RowFeedback;

static inline DbTxn *feedback_txn(Stage *stage, const RowFeedback *feedback)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->feedback, NULL);
    int64_t at_us = 0;
    assert_true(clock_parse(str_from(feedback->at), &at_us));
    db_push_text(db_array(p, DB_TEXT), str_from(feedback->id));
    db_push_text(db_array(p, DB_TEXT), str_from(feedback->state));
    db_push_int(db_array(p, DB_I32), feedback->rank);
    db_push_int(db_array(p, DB_I32), feedback->attempts);
    DbArray *reasons = db_array(p, DB_TEXT);
    feedback->reason == NULL ? db_push_null(reasons)
                             : db_push_text(reasons, str_from(feedback->reason));
    db_push_time(db_array(p, DB_TIME), at_us);
    return txn;
}

// Answers the number of letters that changed.
static inline int64_t stage_tell(Stage *stage, const RowFeedback *feedback)
{
    return stage_run(stage, feedback_txn(stage, feedback), 0);
}

static inline int64_t stage_keep(Stage *stage, const char *name, int limit)
{
    for (int i = 0; i < stage->sql->keep_count; i++) {
        if (strcmp(stage->sql->keep[i].name, name) == 0) {
            DbTxn *txn = db_txn_new(stage->fx->pool);
            db_i32(db_txn_add(txn, &stage->sql->keep[i], NULL), limit);
            return stage_run(stage, txn, 0);
        }
    }
    fail_msg("no statement '%s'", name);
    return -1;
}

static inline int64_t stage_backlog(Stage *stage, int64_t cap)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    DbParams *p = db_txn_add(txn, &stage->sql->backlog, NULL);
    db_i64(p, cap);
    db_null(p);
    return stage_run(stage, txn, 0);
}

// As if the relay of all claims had died long ago.
static inline void stage_expire(Stage *stage)
{
    stage_sql(stage, "UPDATE stentor_outbox.claims SET claimed_until = now() - interval '1 s'");
}

// ---- plans ----

// What EXPLAIN says of a statement under `plan`: types "text[], int4[]", arguments as SQL.
static inline const char *stage_explain(
    Stage *stage, const DbStatement *statement, const char *types, const char *arguments)
{
    static char text[64 * 1024];
    PGconn *admin = stage->fx->admin;
    size_t size = strlen(statement->sql) + 200;
    char *sql = malloc(size);
    admin_exec(admin, "DEALLOCATE ALL; BEGIN");
    admin_exec(admin, stage->sql->plan.sql);
    snprintf(sql, size, "PREPARE p (%s) AS %s", types, statement->sql);
    admin_exec(admin, sql);
    snprintf(sql, size, "EXPLAIN EXECUTE p (%s)", arguments);
    PGresult *res = PQexec(admin, sql);
    free(sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        fail_msg("%s", PQerrorMessage(admin));
    }
    text[0] = '\0';
    for (int i = 0; i < PQntuples(res); i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s\n", PQgetvalue(res, i, 0));
    }
    PQclear(res);
    admin_exec(admin, "ROLLBACK");
    return text;
}

static inline void assert_plan(const char *plan, const char *wanted, const char *unwanted)
{
    if (strstr(plan, wanted) == NULL || strstr(plan, unwanted) != NULL) {
        fail_msg("wanted '%s', not '%s':\n%s", wanted, unwanted, plan);
    }
}
