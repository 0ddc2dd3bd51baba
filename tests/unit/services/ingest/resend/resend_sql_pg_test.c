// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "services/ingest/resend/resend_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define NTF "ntf_01KAGTQ5M0000000000000000A"
#define CREATED_US INT64_C(1763648968320000)

enum { REQUESTS = 4 };

// As the service's role, which row-level security binds.
typedef struct Stage {
    uv_loop_t loop;
    PGconn *admin;
    DbPool *pool;
    Arena *arena;
    ResendKnown known[REQUESTS];
    bool reads;
    bool done;
    Error err;
} Stage;

static const ResendRequest requests[REQUESTS] = {
    {{"acme", 4}, {"e-1", 3}, {NTF, 30}, CREATED_US, {"ops", 3}, false, false, {"", 0}, 0},
    {{"globex", 6}, {"e-1", 3}, {NTF, 30}, CREATED_US, {"", 0}, false, false, {"", 0}, 0},
    {{"acme", 4}, {"e-2", 3}, {NTF, 30}, CREATED_US, {"", 0}, false, false, {"", 0}, 0},
    {{"acme", 4}, {"e-1", 3}, {NTF, 30}, CREATED_US, {"ops", 3}, false, false, {"", 0}, 0},
};
static const ResendRequest *const all[REQUESTS] = {
    &requests[0], &requests[1], &requests[2], &requests[3]};
static const ResendRequest *const twice[] = {
    &requests[0], &requests[3]}; // one event in two deliveries
static const ResendRequest *const other[] = {&requests[1], &requests[1]};

static int open_stage(void **state)
{
    Stage *stage = xcalloc(1, sizeof *stage);
    char url[512];
    stage->admin = admin_connect();
    admin_exec(stage->admin, "TRUNCATE ingest.resends, archiver.notifications");
    admin_exec(
        stage->admin,
        "SELECT stentor.ensure_partitions('archiver.notifications', '2025-11-01', '2025-11-30')");
    admin_exec(
        stage->admin,
        "INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, status, "
        "status_rank) VALUES ('2025-11-20 14:29:28.32Z', '" NTF
        "', 'acme', 'email', 'failed', 11)");
    uv_loop_init(&stage->loop);
    url_with("&user=stentor_ingest", url, sizeof url);
    stage->pool = db_pool_new(
        &stage->loop, &(DbPoolOptions){.url = url, .application_name = "test", .connections = 1});
    stage->arena = arena_new(0);
    *state = stage;
    return 0;
}

static int close_stage(void **state)
{
    Stage *stage = *state;
    bool closed = false;
    arena_free(stage->arena);
    db_pool_close(stage->pool, on_pool_closed, &closed);
    assert_true(run_for(&stage->loop, &closed, true, WAIT_MS));
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    PQfinish(stage->admin);
    free(stage);
    return 0;
}

static void on_db_done(void *ctx, DbTxn *txn, const Error *err)
{
    Stage *stage = ctx;
    if (err != NULL) {
        stage->err = *err;
    } else if (stage->reads) {
        resend_sql_read(txn, stage->known, REQUESTS, stage->arena);
    }
    stage->done = true;
}

static void submit(Stage *stage, DbTxn *txn, bool reads)
{
    stage->reads = reads;
    stage->done = false;
    db_txn_submit(txn, on_db_done, stage);
    assert_true(run_for(&stage->loop, &stage->done, true, WAIT_MS));
    if (stage->err.kind != ERROR_NONE) {
        fail_msg("%s", stage->err.text);
    }
}

static void look_up(Stage *stage)
{
    DbTxn *txn = db_txn_new(stage->pool);
    resend_sql_look_up(txn, all, REQUESTS);
    submit(stage, txn, true);
}

static void note(Stage *stage, const ResendRequest *const *two, uint64_t first, uint64_t second)
{
    const uint64_t letters[] = {first, second};
    DbTxn *txn = db_txn_new(stage->pool);
    resend_sql_note(txn, two, letters, 2);
    submit(stage, txn, false);
}

static void mark(Stage *stage, const ResendRequest *const *two, ResendMark how)
{
    const ResendMark marks[] = {how, how};
    DbTxn *txn = db_txn_new(stage->pool);
    resend_sql_mark(txn, two, marks, 2);
    submit(stage, txn, false);
}

static void check(Stage *stage, int at, uint64_t letter, bool done, const char *status)
{
    const ResendKnown *known = &stage->known[at];
    assert_int_equal(known->letter, letter);
    assert_int_equal(known->done, done);
    assert_string_equal(known->status, status);
}

static void another_tenants_notification_is_not_known(void **state)
{
    look_up(*state);
    check(*state, 0, 0, false, "failed");
    check(*state, 1, 0, false, "");
}

// The same event id of two tenants is two events.
static void an_event_keeps_its_first_letter_and_tenants_are_apart(void **state)
{
    note(*state, all, 7, 8);
    note(*state, twice, 9, 9);
    look_up(*state);
    check(*state, 0, 7, false, "failed");
    check(*state, 1, 8, false, "");
    check(*state, 2, 0, false, "failed");
    check(*state, 3, 7, false, "failed");
}

static void what_is_published_is_not_gone(void **state)
{
    Stage *stage = *state;
    note(stage, all, 7, 8);
    mark(stage, twice, RESEND_PUBLISHED);
    look_up(stage);
    check(stage, 0, 7, false, "failed");
    assert_true(stage->known[0].published);
    assert_false(stage->known[1].published);
    mark(stage, twice, RESEND_GONE); // it is not: its event is stored
    look_up(stage);
    check(stage, 0, 7, false, "failed");
}

static void what_is_done_or_gone_says_who_asked_for_it(void **state)
{
    Stage *stage = *state;
    note(stage, all, 7, 8);
    mark(stage, twice, RESEND_PUBLISHED);
    mark(stage, twice, RESEND_DONE);
    look_up(stage);
    check(stage, 0, 7, true, "failed");
    check(stage, 1, 8, false, "");
    mark(stage, other, RESEND_GONE);
    look_up(stage);
    check(stage, 1, 8, true, "");
    assert_string_equal(
        admin_value(
            stage->admin,
            "SELECT string_agg(tenant_id || ':' || (published_at IS NOT NULL)::int || "
            "(resent_at IS NOT NULL)::int || (gone_at IS NOT NULL)::int, ' ' ORDER BY "
            "tenant_id) FROM ingest.resends"),
        "acme:110 globex:001");
    assert_string_equal(
        admin_value(
            stage->admin, "SELECT requested_by FROM ingest.resends WHERE tenant_id = 'acme'"),
        "ops");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_tenants_notification_is_not_known),
        TEST(an_event_keeps_its_first_letter_and_tenants_are_apart),
        TEST(what_is_published_is_not_gone),
        TEST(what_is_done_or_gone_says_who_asked_for_it),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
