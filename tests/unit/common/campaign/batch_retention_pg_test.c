// SPDX-License-Identifier: Apache-2.0
// The functions that drop batches: what goes, and that a statement does not look at all that ended.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

// Rows of ingest.batches that this transaction has read, by scans and through indexes.
#define BATCHES_READ                                                                               \
    "SELECT pg_stat_get_xact_tuples_returned('ingest.batches'::regclass) + "                       \
    "pg_stat_get_xact_tuples_fetched('ingest.batches'::regclass)"
#define ADD_BATCHES                                                                                \
    "INSERT INTO ingest.batches (id, tenant_id, name, category, channel, priority, template, "     \
    "template_version, locale, rate_per_second, step, status, created_by, created_at, ended_at, "  \
    "members_dropped) SELECT "

static void add_batches(PGconn *admin, const char *prefix, int count, const char *status, int days)
{
    char sql[1024];
    snprintf(
        sql, sizeof sql,
        ADD_BATCHES "'dbt_%s' || n, CASE WHEN n %% 2 = 0 THEN 'globex' ELSE 'acme' END, 'b', "
                    "'marketing', 'email', 'low', 't', '1.0.0', '', 0, 1, '%s', 'k', "
                    "now() - interval '%d days', now() - interval '%d days', false "
                    "FROM generate_series(1, %d) n",
        prefix, status, days, days, count);
    admin_exec(admin, sql);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO ingest.batch_chunks (batch_id, number, tenant_id, part, ordinal, first_index, "
        "members) SELECT b.id, c, b.tenant_id, 0, c, 0, 1 FROM ingest.batches b, "
        "generate_series(0, 1) c WHERE b.id LIKE 'dbt_%s%%'",
        prefix);
    admin_exec(admin, sql);
}

static int64_t number(PGconn *admin, const char *sql)
{
    return strtoll(admin_value(admin, sql), NULL, 10);
}

// Until the function says that there is no more; returns what went.
static int64_t drop_all(PGconn *admin, const char *function)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT dropped || coalesce(go_on, '') FROM %s", function);
    int64_t dropped = 0;
    for (int turn = 0; turn < 1000; turn++) {
        char *rest = NULL;
        dropped += strtoll(admin_value(admin, sql), &rest, 10);
        if (*rest == '\0') {
            return dropped;
        }
    }
    fail_msg("it does not end");
    return 0;
}

static void members_go_with_their_time_and_batches_much_later(void **state)
{
    (void)state;
    PGconn *admin = admin_connect();
    admin_exec(admin, "TRUNCATE ingest.batches CASCADE");
    add_batches(admin, "old", 6, "completed", 40);
    add_batches(admin, "ancient", 4, "failed", 4000);
    add_batches(admin, "young", 3, "cancelled", 10);
    add_batches(admin, "draft", 3, "draft", 40);
    assert_int_equal(
        drop_all(admin, "ingest.drop_batch_members('globex', '35 days', '', 2)"), 2 * (3 + 2));
    assert_int_equal(
        drop_all(admin, "ingest.drop_batch_members(NULL, '35 days', '', 3)"), 2 * (3 + 2));
    assert_int_equal(
        number(
            admin, "SELECT count(*) FROM ingest.batch_chunks WHERE batch_id LIKE 'dbt_young%' "
                   "OR batch_id LIKE 'dbt_draft%'"),
        2 * (3 + 3));
    assert_int_equal(number(admin, "SELECT count(*) FROM ingest.batch_chunks"), 2 * (3 + 3));
    assert_int_equal(drop_all(admin, "ingest.drop_batches('acme', '84 months', '', 1)"), 2);
    assert_int_equal(drop_all(admin, "ingest.drop_batches(NULL, '84 months', '', 1)"), 2);
    assert_int_equal(number(admin, "SELECT count(*) FROM ingest.batches"), 6 + 3 + 3);
    PQfinish(admin);
}

// Seven years of them are kept; each day's pass must not read them all, and 500 rows at a time.
static void what_was_dropped_before_is_not_looked_at_again(void **state)
{
    (void)state;
    PGconn *admin = admin_connect();
    admin_exec(admin, "TRUNCATE ingest.batches CASCADE");
    add_batches(admin, "old", 5000, "completed", 400);
    assert_int_equal(drop_all(admin, "ingest.drop_batch_members(NULL, '35 days', '', 500)"), 10000);
    add_batches(admin, "next", 2, "completed", 40);
    admin_exec(admin, "BEGIN");
    int64_t before = number(admin, BATCHES_READ);
    assert_int_equal(drop_all(admin, "ingest.drop_batch_members(NULL, '35 days', '', 500)"), 4);
    assert_int_equal(drop_all(admin, "ingest.drop_batches(NULL, '84 months', '', 500)"), 0);
    assert_true(number(admin, BATCHES_READ) - before < 100);
    admin_exec(admin, "COMMIT");
    PQfinish(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_go_with_their_time_and_batches_much_later),
        cmocka_unit_test(what_was_dropped_before_is_not_looked_at_again),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
