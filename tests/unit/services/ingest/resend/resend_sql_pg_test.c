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

enum { WISHES = 4 };

typedef struct Asking {
    Arena *arena;
    ResendKnown known[WISHES];
    bool reads;
    bool done;
    Error err;
} Asking;

static void on_db_done(void *ctx, DbTxn *txn, const Error *err)
{
    Asking *asking = ctx;
    if (err != NULL) {
        asking->err = *err;
    } else if (asking->reads) {
        resend_sql_read(txn, asking->known, WISHES, asking->arena);
    }
    asking->done = true;
}

static void submit(uv_loop_t *loop, DbTxn *txn, Asking *asking, bool reads)
{
    asking->reads = reads;
    asking->done = false;
    db_txn_submit(txn, on_db_done, asking);
    assert_true(run_for(loop, &asking->done, true, WAIT_MS));
    if (asking->err.kind != ERROR_NONE) {
        fail_msg("%s", asking->err.text);
    }
}

static void look_up(uv_loop_t *loop, DbPool *pool, const ResendRequest *const *says, Asking *asking)
{
    DbTxn *txn = db_txn_new(pool);
    resend_sql_look_up(txn, says, WISHES);
    submit(loop, txn, asking, true);
}

static void mark(
    uv_loop_t *loop, DbPool *pool, const ResendRequest *const *two, ResendMark how, Asking *asking)
{
    const ResendMark marks[] = {how, how};
    DbTxn *txn = db_txn_new(pool);
    resend_sql_mark(txn, two, marks, 2);
    submit(loop, txn, asking, false);
}

static void check(const ResendKnown *known, uint64_t letter, bool done, const char *status)
{
    assert_int_equal(known->letter, letter);
    assert_int_equal(known->done, done);
    assert_string_equal(known->status, status);
}

// As the service's role, which row-level security binds: the same event id of two tenants is two
// events, and another tenant's notification is not known.
static void an_event_keeps_its_first_letter_and_tenants_are_apart(void **state)
{
    (void)state;
    uv_loop_t loop;
    char url[512];
    bool closed = false;
    PGconn *admin = admin_connect();
    admin_exec(admin, "TRUNCATE ingest.resends, history.notifications");
    admin_exec(
        admin,
        "SELECT stentor.ensure_partitions('history.notifications', '2025-11-01', '2025-11-30')");
    admin_exec(
        admin, "INSERT INTO history.notifications (created_at, id, tenant_id, channel, status, "
               "status_rank) VALUES ('2025-11-20 14:29:28.32Z', '" NTF
               "', 'acme', 'email', 'failed', 11)");
    uv_loop_init(&loop);
    url_with("&user=stentor_ingest", url, sizeof url);
    DbPool *pool = db_pool_new(
        &loop, &(DbPoolOptions){.url = url, .application_name = "test", .connections = 1});
    const ResendRequest items[WISHES] = {
        {STR("acme"), STR("e-1"), STR(NTF), CREATED_US, STR("ops"), false, false, STR_EMPTY},
        {STR("globex"), STR("e-1"), STR(NTF), CREATED_US, STR(""), false, false, STR_EMPTY},
        {STR("acme"), STR("e-2"), STR(NTF), CREATED_US, STR(""), false, false, STR_EMPTY},
        {STR("acme"), STR("e-1"), STR(NTF), CREATED_US, STR("ops"), false, false, STR_EMPTY},
    };
    const ResendRequest *says[WISHES] = {&items[0], &items[1], &items[2], &items[3]};
    Asking asking = {.arena = arena_new(0)};
    look_up(&loop, pool, says, &asking);
    check(&asking.known[0], 0, false, "failed");
    check(&asking.known[1], 0, false, "");

    const uint64_t first[] = {7, 8};
    const uint64_t later[] = {9, 9};
    DbTxn *txn = db_txn_new(pool);
    resend_sql_note(txn, says, first, 2);
    submit(&loop, txn, &asking, false);
    const ResendRequest *twice[] = {says[0], says[3]}; // one event in two deliveries
    txn = db_txn_new(pool);
    resend_sql_note(txn, twice, later, 2);
    submit(&loop, txn, &asking, false);
    look_up(&loop, pool, says, &asking);
    check(&asking.known[0], 7, false, "failed");
    check(&asking.known[1], 8, false, "");
    check(&asking.known[2], 0, false, "failed");
    check(&asking.known[3], 7, false, "failed");

    mark(&loop, pool, twice, RESEND_PUBLISHED, &asking);
    look_up(&loop, pool, says, &asking);
    check(&asking.known[0], 7, false, "failed");
    assert_true(asking.known[0].published);
    assert_false(asking.known[1].published);
    mark(&loop, pool, twice, RESEND_GONE, &asking); // it is not: its event is stored
    look_up(&loop, pool, says, &asking);
    check(&asking.known[0], 7, false, "failed");
    mark(&loop, pool, twice, RESEND_DONE, &asking);
    look_up(&loop, pool, says, &asking);
    check(&asking.known[0], 7, true, "failed");
    check(&asking.known[1], 8, false, "");
    const ResendRequest *other[] = {says[1], says[1]};
    mark(&loop, pool, other, RESEND_GONE, &asking);
    look_up(&loop, pool, says, &asking);
    check(&asking.known[1], 8, true, "");
    assert_string_equal(
        admin_value(
            admin, "SELECT string_agg(tenant_id || ':' || (published_at IS NOT NULL)::int || "
                   "(resent_at IS NOT NULL)::int || (gone_at IS NOT NULL)::int, ' ' ORDER BY "
                   "tenant_id) FROM ingest.resends"),
        "acme:110 globex:001");
    assert_string_equal(
        admin_value(admin, "SELECT requested_by FROM ingest.resends WHERE tenant_id = 'acme'"),
        "ops");

    arena_free(asking.arena);
    db_pool_close(pool, on_pool_closed, &closed);
    assert_true(run_for(&loop, &closed, true, WAIT_MS));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    PQfinish(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_keeps_its_first_letter_and_tenants_are_apart),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
