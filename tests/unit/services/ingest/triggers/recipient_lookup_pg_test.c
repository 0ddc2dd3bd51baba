// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/ingest/triggers/recipient_lookup.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define FIRST "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA1"
#define SECOND "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA2"
#define OTHERS "rcp_01ARZ3NDEKTSV4RRFFQ69G5FA3"

enum { WANTS = 11 };

typedef struct Asking {
    Arena *arena;
    TriggerWant *wants;
    size_t count;
    bool done;
    Error err;
} Asking;

static void fill(PGconn *admin)
{
    admin_exec(admin, "TRUNCATE people.recipients, people.labels");
    admin_exec(
        admin, "INSERT INTO people.labels (tenant_id, recipient_id, label) VALUES "
               "('acme', '" SECOND "', 'admin'), ('acme', '" FIRST "', 'admin'), "
               "('other', '" OTHERS "', 'admin'), ('acme', '" FIRST "', 'night')");
    admin_exec(
        admin, "INSERT INTO people.labels (tenant_id, recipient_id, label) SELECT 'acme', "
               "'rcp_01ARZ3NDEKTSV4RRFFQ69' || lpad(i::text, 5, '0'), 'crowd' FROM "
               "generate_series(1, 1500) i");
    admin_exec(
        admin,
        "INSERT INTO people.recipients (tenant_id, recipient_id, identity_type, identity_id, "
        "updated_at, sequence) VALUES "
        "('acme', '" SECOND "', 'guest', 'g-1', now(), 2), "
        "('acme', '" FIRST "', 'guest', 'g-1', now(), 1), "
        "('other', '" OTHERS "', 'guest', 'g-1', now(), 3)");
}

static void on_db_found(void *ctx, DbTxn *txn, const Error *err)
{
    Asking *asking = ctx;
    if (err == NULL) {
        recipient_lookup_read(txn, asking->wants, asking->count, asking->arena);
    } else {
        asking->err = *err;
    }
    asking->done = true;
}

static void ask(uv_loop_t *loop, DbPool *pool, Asking *asking)
{
    DbTxn *txn = db_txn_new(pool);
    recipient_lookup_add(txn, asking->wants, asking->count);
    db_txn_submit(txn, on_db_found, asking);
    assert_true(run_for(loop, &asking->done, true, WAIT_MS));
    if (asking->err.kind != ERROR_NONE) {
        fail_msg("%s", asking->err.text);
    }
}

// As the service's role, which row-level security binds.
static void recipients_are_found_by_id_identity_and_label_within_their_tenant(void **state)
{
    (void)state;
    uv_loop_t loop;
    char url[512];
    bool closed = false;
    PGconn *admin = admin_connect();
    fill(admin);
    uv_loop_init(&loop);
    url_with("&user=stentor_ingest", url, sizeof url);
    DbPool *pool = db_pool_new(
        &loop, &(DbPoolOptions){.url = url, .application_name = "test", .connections = 1});
    Target targets[WANTS] = {
        {.kind = TARGET_RECIPIENT, .value = STR(SECOND)},
        {.kind = TARGET_IDENTITY, .identity = IDENTITY_GUEST, .value = STR("g-1")},
        {.kind = TARGET_IDENTITY, .identity = IDENTITY_USER, .value = STR("g-1")},
        {.kind = TARGET_IDENTITY, .identity = IDENTITY_GUEST, .value = STR("g-2")},
        {.kind = TARGET_RECIPIENT, .value = STR(OTHERS)},
        {.kind = TARGET_RECIPIENT, .value = STR("rcp_01ARZ3NDEKTSV4RRFFQ69G5FA9")},
        {.kind = TARGET_IDENTITY, .identity = IDENTITY_GUEST, .value = STR("g-1")},
        {.kind = TARGET_RECIPIENT, .value = STR(SECOND)},
        {.kind = TARGET_LABEL, .value = STR("admin")},
        {.kind = TARGET_LABEL, .value = STR("crowd")},
        {.kind = TARGET_LABEL, .value = STR("unknown")},
    };
    static const char *const FOUND[WANTS] = {SECOND, FIRST, "", "", "", "", OTHERS, "", "", "", ""};
    TriggerWant wants[WANTS];
    for (size_t i = 0; i < WANTS; i++) {
        wants[i] = (TriggerWant){i < 6 || i > 7 ? STR("acme") : STR("other"), &targets[i]};
    }
    Asking asking = {.arena = arena_new(0), .wants = wants, .count = WANTS};
    ask(&loop, pool, &asking);
    for (size_t i = 0; i < WANTS; i++) {
        if (!str_eq(targets[i].recipient_id, str_from(FOUND[i]))) {
            fail_msg("%zu: " STR_FMT, i, STR_ARG(targets[i].recipient_id));
        }
    }
    assert_int_equal(targets[8].member_count, 2); // of the tenant alone, in the order of the ids
    assert_true(str_eq(targets[8].members[0], STR(FIRST)));
    assert_true(str_eq(targets[8].members[1], STR(SECOND)));
    assert_int_equal(targets[9].member_count, RESOLVER_LABEL_MAX + 1); // more than may be
    assert_int_equal(targets[10].member_count, 0);
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
        cmocka_unit_test(recipients_are_found_by_id_identity_and_label_within_their_tenant),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
