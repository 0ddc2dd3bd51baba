// SPDX-License-Identifier: Apache-2.0
// The ledger in a real Postgres, with a few keys of two tenants.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/dispatcher/ledger/ledger.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { KEYS = 4, LEASE_MS = 60000 };

typedef struct Stage {
    Fixture *fx;
    char ids[KEYS][ID_SIZE];
    LedgerKey keys[KEYS];
    const LedgerKey *list[KEYS];
    LedgerPlace place; // of each claim
    Answer answer;
} Stage;

static inline int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatcher", NULL};
    migrate_these(schemas);
    return 0;
}

static inline int stage_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    char url[256];
    stage->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_dispatcher", url, sizeof url), .connections = 1});
    admin_exec(stage->fx->admin, "TRUNCATE dispatcher.ledger");
    int64_t now = clock_now_us();
    for (int i = 0; i < KEYS; i++) {
        id_new("ntf_", now, stage->ids[i]);
        int64_t ms = 0;
        assert_true(id_parse(str_from(stage->ids[i]), "ntf_", &ms));
        stage->keys[i] = (LedgerKey){
            ms * 1000, str_from(stage->ids[i]), 1, i % 2 == 0 ? STR("acme") : STR("zeta"), false};
        stage->list[i] = &stage->keys[i];
    }
    stage->place = (LedgerPlace){STR("smtp"), STR_EMPTY, STR_EMPTY};
    *state = stage;
    return 0;
}

static inline int stage_down(void **state)
{
    Stage *stage = *state;
    answer_clear(&stage->answer);
    fixture_free(stage->fx);
    free(stage);
    return 0;
}

static inline void committed(Stage *stage, DbTxn *txn)
{
    submit_and_wait(stage->fx, txn, &stage->answer);
    if (stage->answer.err.kind != ERROR_NONE) {
        fail_msg("%s", stage->answer.err.text);
    }
}

static inline LedgerClaim claim_by(const char *owner)
{
    return (LedgerClaim){str_from(owner), LEASE_MS, clock_now_us()};
}

static inline size_t claim(Stage *stage, size_t count, const char *owner)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    LedgerClaim held = claim_by(owner);
    const LedgerPlace *places[KEYS] = {&stage->place, &stage->place, &stage->place, &stage->place};
    ledger_add_claim(txn, stage->list, places, count, &held);
    committed(stage, txn);
    return ledger_conflicts(stage->answer.rows[0]);
}

static inline LedgerRow sent_row(void)
{
    return (LedgerRow){
        .state = LEDGER_SENT,
        .claimed_at_us = 1000000,
        .finished_at_us = 2000000,
        .rung = -1,
        .vendor = STR("smtp"),
        .vendor_message_id = STR("id@x"),
        .code = STR("250"),
        .enhanced = STR("2.0.0"),
        .reply = STR("Ok"),
    };
}

static inline size_t record(Stage *stage, const LedgerRow *row, size_t count, const char *owner)
{
    const LedgerRow *rows[KEYS] = {row, row, row, row};
    DbTxn *txn = db_txn_new(stage->fx->pool);
    ledger_add_outcomes(txn, stage->list, rows, count, str_from(owner));
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static inline size_t take_over(Stage *stage, size_t count, const char *owner)
{
    DbTxn *txn = db_txn_new(stage->fx->pool);
    LedgerClaim held = claim_by(owner);
    const LedgerPlace *places[KEYS] = {&stage->place, &stage->place, &stage->place, &stage->place};
    ledger_add_take_over(txn, stage->list, places, count, &held);
    committed(stage, txn);
    return (size_t)db_rows(stage->answer.rows[0]);
}

static inline void expire(Stage *stage)
{
    admin_exec(
        stage->fx->admin, "UPDATE dispatcher.ledger SET lease_until = now() - interval '1 second'");
}

// So that plans are made for a table of one page.
static inline void note_as_small(Stage *stage)
{
    admin_exec(stage->fx->admin, "VACUUM ANALYZE dispatcher.ledger");
}

// The table grows, and nothing makes Postgres plan prepared statements again.
static inline void fill_table(Stage *stage)
{
    admin_exec(
        stage->fx->admin, "INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, "
                          "tenant_id, state, owner, lease_until, claimed_at)"
                          " SELECT now(), 'ntf_' || n, 1, 'acme', 'sent', 'x', now(), now() FROM "
                          "generate_series(1, 50000) n");
    admin_exec(stage->fx->admin, "SELECT pg_stat_reset()");
}

// Ends the pool.
static inline void expect_no_scan(Stage *stage)
{
    fixture_close_pool(stage->fx); // its backend reports its counts when it ends
    const char *scans = "0";
    for (int i = 0; i < 250 && strcmp(scans, "0") == 0; i++) {
        run_ms(&stage->fx->loop, 20);
        admin_exec(stage->fx->admin, "SELECT pg_stat_clear_snapshot()");
        scans = admin_value(
            stage->fx->admin, "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_tables WHERE "
                              "schemaname = 'dispatcher'");
    }
    assert_string_not_equal(scans, "0"); // the counts have arrived
    assert_string_equal(
        admin_value(
            stage->fx->admin,
            "SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'dispatcher'"),
        "0");
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)
