// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "tests/unit/common/db/pg_fixture.h"

static const DbStatement INSERT = {
    "insert", "INSERT INTO notes (id, body) SELECT * FROM unnest($1::int8[], $2::text[])"
              " RETURNING id, body"};
static const DbStatement COUNT = {"count", "SELECT count(*) FROM notes"};
static const DbStatement MISSING_TABLE = {"missing_table", "SELECT * FROM nowhere"};
static const DbStatement SETTINGS = {
    "settings", "SELECT current_setting('app.tenant_id', true),"
                " current_setting('synchronous_commit'), current_setting('application_name'),"
                " current_setting('statement_timeout')"};
static const DbStatement KILL_ME = {
    "kill_me", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5)"};
static const DbStatement SLEEP = {"sleep", "SELECT pg_sleep(3)"};
static const DbStatement NAP = {"nap", "SELECT pg_sleep(0.3)"};
static const DbStatement BACKEND = {"backend", "SELECT pg_backend_pid()"};
static const DbStatement ALL_NOTES = {"all_notes", "SELECT * FROM notes ORDER BY id"};
static const DbStatement DEFERRED = {"deferred", "INSERT INTO late VALUES (1)"};
static const DbStatement XID = {"xid", "SELECT txid_current()"};

static int set_up(void **state)
{
    Fixture *fx = fixture_new(&(DbPoolOptions){
        .url = test_url(),
        .application_name = "stentor-test",
        .connections = 1,
        .statement_timeout_ms = 1500,
        .queue_max = 3,
    });
    admin_exec(
        fx->admin, "DROP TABLE IF EXISTS notes, late;"
                   "CREATE TABLE notes (id bigint PRIMARY KEY, body text NOT NULL);"
                   "CREATE TABLE late (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    fixture_free(*state);
    return 0;
}

static DbTxn *insert_notes(DbPool *pool, int64_t from, int64_t to)
{
    DbTxn *txn = db_txn_new(pool);
    DbParams *p = db_txn_add(txn, &INSERT, NULL);
    DbArray *ids = db_array(p, DB_I64);
    DbArray *bodies = db_array(p, DB_TEXT);
    for (int64_t i = from; i < to; i++) {
        db_push_int(ids, i);
        db_push_text(bodies, STR("a note"));
    }
    return txn;
}

static int64_t count_notes(Fixture *fx)
{
    Answer answer = {0};
    run_statement(fx, &COUNT, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    int64_t count = db_get_int(answer.rows[0], 0, 0);
    answer_clear(&answer);
    return count;
}

static int64_t backend_pid(Fixture *fx)
{
    Answer answer = {0};
    run_statement(fx, &BACKEND, &answer);
    int64_t pid = answer.err.kind == ERROR_NONE ? db_get_int(answer.rows[0], 0, 0) : 0;
    answer_clear(&answer);
    return pid;
}

static void a_batch_is_inserted_and_returned(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    submit_and_wait(fx, insert_notes(fx->pool, 0, 300), &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_int_equal(db_rows(answer.rows[0]), 300);
    assert_int_equal(db_get_int(answer.rows[0], 299, 0), 299);
    assert_true(str_eq(db_get_text(answer.rows[0], 7, 1), STR("a note")));
    answer_clear(&answer);
    assert_int_equal(count_notes(fx), 300);
    assert_int_equal(db_pool_pending(fx->pool), 0);
}

static void a_transaction_is_whole_or_nothing(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = insert_notes(fx->pool, 0, 10);
    DbParams *p = db_txn_add(txn, &INSERT, NULL);
    db_push_int(db_array(p, DB_I64), 3); // there already
    db_push_text(db_array(p, DB_TEXT), STR("again"));
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(answer.err.text, "'insert': duplicate key"));
    assert_non_null(strstr(answer.err.text, "23505"));
    assert_int_equal(count_notes(fx), 0);
}

static void statements_of_one_transaction_share_it(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    int first = -1;
    int second = -1;
    db_txn_add(txn, &XID, &first);
    db_txn_add(txn, &XID, &second);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(first, 0);
    assert_int_equal(second, 1);
    assert_int_equal(db_get_int(answer.rows[0], 0, 0), db_get_int(answer.rows[1], 0, 0));
    answer_clear(&answer);
}

static void a_failure_leaves_the_connection_fit_for_the_next(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    int64_t pid = backend_pid(fx);
    for (int i = 0; i < 3; i++) {
        DbTxn *txn = db_txn_new(fx->pool);
        DbParams *p = db_txn_add(txn, &INSERT, NULL);
        db_push_int(db_array(p, DB_I64), i);
        db_push_null(db_array(p, DB_TEXT)); // NOT NULL
        submit_and_wait(fx, txn, &answer);
        assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    }
    submit_and_wait(fx, insert_notes(fx->pool, 0, 5), &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    answer_clear(&answer);
    assert_int_equal(count_notes(fx), 5);
    assert_int_equal(backend_pid(fx), pid);
}

static void a_commit_that_fails_is_reported(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    admin_exec(fx->admin, "INSERT INTO late VALUES (1)");
    run_statement(fx, &DEFERRED, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(answer.err.text, "23505"));
    assert_int_equal(count_notes(fx), 0);
}

static void a_missing_table_is_an_error_of_the_installation(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    run_statement(fx, &MISSING_TABLE, &answer);
    assert_int_equal(answer.err.kind, ERROR_CONFIG);
    assert_non_null(strstr(answer.err.text, "nowhere"));
    admin_exec(fx->admin, "CREATE TABLE nowhere (x int)");
    run_statement(fx, &MISSING_TABLE, &answer); // it was not remembered as prepared
    assert_int_equal(answer.err.kind, ERROR_NONE);
    answer_clear(&answer);
    admin_exec(fx->admin, "DROP TABLE nowhere");
}

static void a_table_changed_under_a_prepared_statement_heals(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    run_statement(fx, &ALL_NOTES, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    admin_exec(fx->admin, "ALTER TABLE notes ADD COLUMN more text");
    run_statement(fx, &ALL_NOTES, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    run_statement(fx, &ALL_NOTES, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    answer_clear(&answer);
}

static void a_killed_backend_is_transient_and_the_pool_recovers(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    run_statement(fx, &KILL_ME, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    submit_and_wait(fx, insert_notes(fx->pool, 0, 2), &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    answer_clear(&answer);
    assert_int_equal(count_notes(fx), 2);
}

static void an_idle_connection_that_dies_is_replaced(void **state)
{
    Fixture *fx = *state;
    int64_t pid = backend_pid(fx);
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%lld, 5000)", (long long)pid);
    admin_exec(fx->admin, sql);
    run_ms(&fx->loop, 50);
    assert_false(db_pool_ready(fx->pool));
    int64_t other = backend_pid(fx);
    assert_int_not_equal(other, 0);
    assert_int_not_equal(other, pid);
    assert_true(db_pool_ready(fx->pool));
}

static void a_statement_that_takes_too_long_is_transient(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    run_statement(fx, &SLEEP, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(answer.err.text, "57014"));
}

// A server that hangs answers nothing, not even its own timeout.
static void a_server_that_hangs_is_given_up(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    pid_t pid = (pid_t)backend_pid(fx);
    assert_int_not_equal(pid, 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    run_statement(fx, &COUNT, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(answer.err.text, "did not answer"));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(count_notes(fx), 0);
}

static void what_waits_beyond_the_queue_is_refused(void **state)
{
    Fixture *fx = *state;
    assert_int_not_equal(backend_pid(fx), 0); // connected
    Answer answers[5] = {0};
    for (int i = 0; i < 5; i++) { // one is sent, three wait, one is too many
        db_txn_submit(insert_notes(fx->pool, i, i + 1), on_answer, &answers[i]);
    }
    assert_int_equal(db_pool_pending(fx->pool), 5);
    for (int i = 0; i < 5; i++) {
        assert_false(answers[i].done);
    }
    for (int i = 0; i < 5; i++) {
        assert_true(run_for(&fx->loop, &answers[i].done, true, WAIT_MS));
        assert_int_equal(answers[i].err.kind, i < 4 ? ERROR_NONE : ERROR_TRANSIENT);
        answer_clear(&answers[i]);
    }
    assert_int_equal(count_notes(fx), 4);
}

static void on_timed(void *ctx, double seconds)
{
    double *longest = ctx;
    *longest = seconds > *longest ? seconds : *longest;
}

static void the_pool_says_what_it_does_and_how_long_it_took(void **state)
{
    Fixture *fx = *state;
    double longest = 0;
    db_pool_on_timed(fx->pool, on_timed, &longest);
    assert_int_not_equal(backend_pid(fx), 0); // connected
    DbPoolStats stats = db_pool_stats(fx->pool);
    assert_int_equal(stats.idle, 1);
    assert_int_equal(stats.busy + stats.absent + stats.waiting, 0);
    assert_true(longest > 0 && longest < 1.5);
    Answer answers[3] = {0};
    for (int i = 0; i < 3; i++) {
        DbTxn *txn = db_txn_new(fx->pool);
        db_txn_add(txn, &NAP, NULL);
        db_txn_submit(txn, on_answer, &answers[i]);
    }
    stats = db_pool_stats(fx->pool);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.waiting, 2);
    for (int i = 0; i < 3; i++) {
        assert_true(run_for(&fx->loop, &answers[i].done, true, WAIT_MS));
        answer_clear(&answers[i]);
    }
    // Each for itself: what it waited for a connection is not its time in Postgres.
    assert_true(longest >= 0.3 && longest < 0.6);
}

static void tenants_and_lazy_commit_last_for_one_transaction(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    db_txn_tenant(txn, STR("acme"));
    db_txn_tenant(txn, STR("acme"));
    db_txn_lazy_commit(txn);
    db_txn_add(txn, &SETTINGS, NULL);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_NONE);
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 0), STR("acme")));
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 1), STR("off")));
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 2), STR("stentor-test")));
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 3), STR("1500ms")));
    run_statement(fx, &SETTINGS, &answer);
    assert_int_equal(db_get_text(answer.rows[0], 0, 0).len, 0);
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 1), STR("on")));
    answer_clear(&answer);
}

static void many_tenants_are_all_named_once(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "tenant%d", i % 100);
        db_txn_tenant(txn, str_from(name));
    }
    db_txn_add(txn, &SETTINGS, NULL);
    submit_and_wait(fx, txn, &answer);
    Str names = db_get_text(answer.rows[0], 0, 0);
    int count = 0;
    for (Str name; str_split(&names, ',', &name);) {
        count++;
    }
    assert_int_equal(count, 100);
    answer_clear(&answer);
}

static void a_name_that_would_name_two_tenants_is_refused(void **state)
{
    Fixture *fx = *state;
    Answer answer = {0};
    DbTxn *txn = db_txn_new(fx->pool);
    db_txn_tenant(txn, STR("acme,globex"));
    db_txn_add(txn, &SETTINGS, NULL);
    submit_and_wait(fx, txn, &answer);
    assert_int_equal(answer.err.kind, ERROR_PERMANENT);
    assert_string_equal(answer.err.text, "'acme,globex' is not a tenant id");
}

static void closing_cancels_what_waits_and_what_runs(void **state)
{
    Fixture *fx = *state;
    assert_int_not_equal(backend_pid(fx), 0);
    Answer answers[2] = {0};
    for (int i = 0; i < 2; i++) {
        DbTxn *txn = db_txn_new(fx->pool);
        db_txn_add(txn, &SLEEP, NULL);
        db_txn_submit(txn, on_answer, &answers[i]);
    }
    fixture_close_pool(fx);
    for (int i = 0; i < 2; i++) {
        assert_true(answers[i].done);
        assert_int_equal(answers[i].err.kind, ERROR_CANCELLED);
    }
}

static void close_from_on_done(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    assert_null(err);
    Fixture *fx = ctx;
    db_pool_close(fx->pool, on_pool_closed, &fx->closed);
    fx->pool = NULL;
}

static void a_callback_may_close_the_pool(void **state)
{
    Fixture *fx = *state;
    db_txn_submit(insert_notes(fx->pool, 0, 1), close_from_on_done, fx);
    assert_true(run_for(&fx->loop, &fx->closed, true, WAIT_MS));
    assert_string_equal(admin_value(fx->admin, "SELECT count(*) FROM notes"), "1");
}

typedef struct Chain {
    Fixture *fx;
    int left;
    bool done;
} Chain;

static void submit_next(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    assert_null(err);
    Chain *chain = ctx;
    if (--chain->left == 0) {
        chain->done = true;
        return;
    }
    db_txn_submit(insert_notes(chain->fx->pool, chain->left, chain->left + 1), submit_next, chain);
}

static void a_callback_may_submit_the_next(void **state)
{
    Chain chain = {.fx = *state, .left = 50};
    db_txn_submit(insert_notes(chain.fx->pool, 50, 51), submit_next, &chain);
    assert_true(run_for(&chain.fx->loop, &chain.done, true, WAIT_MS));
    assert_int_equal(count_notes(chain.fx), 50);
}

static void without_a_server_a_transaction_waits_and_then_fails(void **state)
{
    (void)state;
    Fixture *fx = fixture_new(&(DbPoolOptions){
        .url = "postgresql://unknown@127.0.0.1:1/none",
        .connections = 2,
        .statement_timeout_ms = 600,
    });
    Answer answer = {0};
    run_statement(fx, &COUNT, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(answer.err.text, "no connection to postgres"));
    assert_non_null(strstr(answer.err.text, "refused"));
    assert_false(db_pool_ready(fx->pool));
    fixture_free(fx);
}

static void a_url_that_is_none_does_not_leak_into_the_error(void **state)
{
    (void)state;
    Fixture *fx = fixture_new(&(DbPoolOptions){
        .url = "not a url with secret",
        .connections = 1,
        .statement_timeout_ms = 300,
    });
    Answer answer = {0};
    run_statement(fx, &COUNT, &answer);
    assert_int_equal(answer.err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(answer.err.text, "cannot be parsed"));
    assert_null(strstr(answer.err.text, "secret"));
    fixture_free(fx);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

// Whatever the database or the role says: statements see what was committed before each of them.
static void the_defaults_of_the_database_do_not_count(void **state)
{
    (void)state;
    static const DbStatement show = {
        "show_defaults", "SELECT current_setting('transaction_isolation') || ', '"
                         " || current_setting('TimeZone')"};
    Fixture *fx = fixture_new(&(DbPoolOptions){.url = test_url(), .connections = 1});
    Answer answer = {0};
    admin_exec(
        fx->admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation"
                   " = serializable', current_database()); EXECUTE format('ALTER DATABASE %I SET"
                   " TimeZone = ''Europe/Berlin''', current_database()); END $$");
    fixture_free(fx);
    fx = fixture_new(&(DbPoolOptions){.url = test_url(), .connections = 1});
    run_statement(fx, &show, &answer);
    admin_exec(
        fx->admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());"
                   " END $$");
    assert_true(str_eq(db_get_text(answer.rows[0], 0, 0), STR("read committed, UTC")));
    answer_clear(&answer);
    fixture_free(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_of_the_database_do_not_count),
        TEST(a_batch_is_inserted_and_returned),
        TEST(a_transaction_is_whole_or_nothing),
        TEST(statements_of_one_transaction_share_it),
        TEST(a_failure_leaves_the_connection_fit_for_the_next),
        TEST(a_commit_that_fails_is_reported),
        TEST(a_missing_table_is_an_error_of_the_installation),
        TEST(a_table_changed_under_a_prepared_statement_heals),
        TEST(a_killed_backend_is_transient_and_the_pool_recovers),
        TEST(an_idle_connection_that_dies_is_replaced),
        TEST(a_statement_that_takes_too_long_is_transient),
        TEST(a_server_that_hangs_is_given_up),
        TEST(what_waits_beyond_the_queue_is_refused),
        TEST(the_pool_says_what_it_does_and_how_long_it_took),
        TEST(tenants_and_lazy_commit_last_for_one_transaction),
        TEST(many_tenants_are_all_named_once),
        TEST(a_name_that_would_name_two_tenants_is_refused),
        TEST(closing_cancels_what_waits_and_what_runs),
        TEST(a_callback_may_close_the_pool),
        TEST(a_callback_may_submit_the_next),
        cmocka_unit_test(without_a_server_a_transaction_waits_and_then_fails),
        cmocka_unit_test(a_url_that_is_none_does_not_leak_into_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
