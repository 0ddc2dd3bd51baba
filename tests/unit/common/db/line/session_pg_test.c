// SPDX-License-Identifier: Apache-2.0
// Tries to cross tenants through one connection that is used again and again: whatever the
// transaction before named, and however it ended, a transaction sees and writes what it named.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

static const DbStatement INSERT_KEY = {
    "test_insert_key", "INSERT INTO ingest.idempotency_keys SELECT t, 's', $2::text, '\\x00', 202,"
                       " '', now() FROM unnest($1::text[]) AS t"};
static const DbStatement SEE_KEYS = {
    "test_see_keys", "SELECT coalesce(string_agg(DISTINCT tenant_id, ' '), ''),"
                     " current_setting('synchronous_commit'), pg_backend_pid()"
                     " FROM ingest.idempotency_keys"};
static const DbStatement TOUCH_KEYS = {
    "test_touch_keys",
    "WITH t AS (UPDATE ingest.idempotency_keys SET response_status = response_status RETURNING"
    " tenant_id) SELECT coalesce(string_agg(DISTINCT tenant_id, ' '), '') FROM t"};
static const DbStatement KILL_ME = {
    "test_kill_me", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5)"};
static const DbStatement SLEEP = {"test_sleep", "SELECT pg_sleep(3)"};

enum { TENANTS = 3, STEPS = 400, NAMES_SIZE = 64 };
static const char *const NAMES[TENANTS] = {"acme", "globex", "initech"};

typedef enum End { END_COMMIT, END_FOREIGN_INSERT, END_TIMEOUT, END_KILLED } End;

static int set_up(void **state)
{
    char url[512];
    Fixture *fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_ingest", url, sizeof url),
        .connections = 1,
        .statement_timeout_ms = 1000});
    admin_exec(
        fx->admin, "TRUNCATE ingest.idempotency_keys;"
                   "INSERT INTO ingest.idempotency_keys SELECT t, 's', 'k', '\\x00', 202, '', now()"
                   " FROM unnest(ARRAY['acme', 'globex', 'initech']) AS t");
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    fixture_free(*state);
    return 0;
}

static DbTxn *txn_naming(Fixture *fx, unsigned named, bool lazy, char names[NAMES_SIZE])
{
    DbTxn *txn = db_txn_new(fx->pool);
    size_t len = 0;
    names[0] = '\0';
    for (unsigned i = 0; i < TENANTS; i++) {
        if ((named >> i & 1) != 0) {
            db_txn_tenant(txn, str_from(NAMES[i]));
            len += (size_t)snprintf(
                names + len, NAMES_SIZE - len, "%s%s", len > 0 ? " " : "", NAMES[i]);
        }
    }
    if (lazy) {
        db_txn_lazy_commit(txn);
    }
    return txn;
}

// A tenant that the transaction did not name; all are named: none of ours.
static const char *foreign_to(unsigned named)
{
    for (unsigned i = 0; i < TENANTS; i++) {
        if ((named >> i & 1) == 0) {
            return NAMES[i];
        }
    }
    return "umbrella";
}

static ErrorKind kind_of(End end)
{
    return end == END_COMMIT           ? ERROR_NONE
           : end == END_FOREIGN_INSERT ? ERROR_CONFIG
                                       : ERROR_TRANSIENT;
}

static void add_end(DbTxn *txn, End end, unsigned named)
{
    if (end == END_FOREIGN_INSERT) {
        DbParams *p = db_txn_add(txn, &INSERT_KEY, NULL);
        db_push_text(db_array(p, DB_TEXT), str_from(foreign_to(named)));
        db_text(p, STR("foreign"));
    } else if (end != END_COMMIT) {
        db_txn_add(txn, end == END_TIMEOUT ? &SLEEP : &KILL_ME, NULL);
    }
}

// Returns the server's process; 0: it did not commit.
static int64_t step(Fixture *fx, unsigned named, bool lazy, End end)
{
    Answer answer = {0};
    char names[NAMES_SIZE];
    DbTxn *txn = txn_naming(fx, named, lazy, names);
    db_txn_add(txn, &SEE_KEYS, NULL);
    db_txn_add(txn, &TOUCH_KEYS, NULL);
    add_end(txn, end, named);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, kind_of(end));
    int64_t pid = 0;
    if (end == END_COMMIT) {
        assert_true(str_eq(db_get_text(answer.rows[0], 0, 0), str_from(names)));
        assert_true(str_eq(db_get_text(answer.rows[0], 0, 1), lazy ? STR("off") : STR("on")));
        assert_true(str_eq(db_get_text(answer.rows[1], 0, 0), str_from(names)));
        pid = db_get_int(answer.rows[0], 0, 2);
    }
    answer_clear(&answer);
    for (int i = 0; end == END_KILLED && i < 1000 && !db_pool_ready(fx->pool); i++) {
        run_ms(&fx->loop, 10);
    }
    return pid;
}

static End end_of(unsigned dice)
{
    return dice == 0   ? END_TIMEOUT
           : dice < 4  ? END_KILLED
           : dice < 25 ? END_FOREIGN_INSERT
                       : END_COMMIT;
}

static void a_transaction_has_the_tenants_it_named_whatever_was_before_it(void **state)
{
    Fixture *fx = *state;
    uint32_t dice = 20261127;
    unsigned named = 0;
    bool lazy = false;
    int64_t pid = 0;
    int reused = 0;
    for (int i = 0; i < STEPS; i++) {
        dice = dice * 1664525U + 1013904223U;
        if (dice >> 30 != 0) { // else what the one before it named
            named = dice >> 8 & 7;
            lazy = (dice >> 11 & 1) != 0;
        }
        int64_t now = step(fx, named, lazy, end_of(dice >> 16 & 127));
        reused += now != 0 && now == pid;
        pid = now != 0 ? now : pid;
    }
    assert_true(reused > STEPS / 2); // of these the connection was the one before's
    assert_string_equal(
        admin_value(
            fx->admin, "SELECT count(*) FROM ingest.idempotency_keys WHERE idempotency_key <> 'k'"),
        "0");
}

// The last committed named acme, a failed one globex: neither is what the next finds.
static void a_failure_leaves_no_tenant_behind(void **state)
{
    Fixture *fx = *state;
    for (int i = 0; i < 3; i++) {
        step(fx, 1, true, END_COMMIT);
    }
    step(fx, 2, false, END_FOREIGN_INSERT);
    step(fx, 0, false, END_COMMIT);
    step(fx, 2, false, END_FOREIGN_INSERT);
    step(fx, 1, true, END_COMMIT);
    step(fx, 1, true, END_FOREIGN_INSERT);
    step(fx, 2, true, END_COMMIT);
}

// A transaction that is not lazy commits as the role does, not as we would.
static void what_is_not_lazy_is_as_the_role_has_it(void **state)
{
    (void)state;
    PGconn *admin = admin_connect();
    admin_exec(admin, "ALTER ROLE stentor_ingest SET synchronous_commit = 'local'");
    void *own = NULL;
    set_up(&own);
    Fixture *fx = own;
    for (int i = 0; i < 6; i++) {
        Answer answer = {0};
        char names[NAMES_SIZE];
        bool lazy = i % 3 == 2;
        DbTxn *txn = txn_naming(fx, 1, lazy, names);
        db_txn_add(txn, &SEE_KEYS, NULL);
        submit_and_wait(fx, txn, &answer);
        assert_true(str_eq(db_get_text(answer.rows[0], 0, 1), lazy ? STR("off") : STR("local")));
        answer_clear(&answer);
    }
    fixture_free(fx);
    admin_exec(admin, "ALTER ROLE stentor_ingest RESET synchronous_commit");
    PQfinish(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_transaction_has_the_tenants_it_named_whatever_was_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_leaves_no_tenant_behind, set_up, tear_down),
        cmocka_unit_test(what_is_not_lazy_is_as_the_role_has_it),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
