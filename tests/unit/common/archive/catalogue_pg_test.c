// SPDX-License-Identifier: Apache-2.0
// The catalogue's functions with a real Postgres: which row is the clocks' witness and what a
// refusal leaves behind; what a hold keeps of the log; which requests go.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/archive_clocks.h"
#include "common/archive/database.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Bench {
    PGconn *admin;
    Archive archive;
} Bench;

static int set_up(void **state)
{
    Bench *bench = calloc(1, sizeof *bench);
    bench->admin = admin_connect();
    admin_exec(
        bench->admin,
        "UPDATE archive.installation SET clock_fault = NULL; TRUNCATE archive.journal, "
        "archive.log_positions CASCADE");
    Error err = {0};
    bench->archive.pg = archive_connect(test_url(), "test", &err);
    assert_non_null(bench->archive.pg);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    Bench *bench = *state;
    PQfinish(bench->archive.pg);
    PQfinish(bench->admin);
    free(bench);
    return 0;
}

static void stored(Bench *bench, const char *stream, const char *when, const char *active)
{
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO archive.log_positions (stream, stored_at, active) VALUES ('%s', now() + "
        "'%s', %s) ON CONFLICT (stream) DO UPDATE SET stored_at = excluded.stored_at",
        stream, when, active);
    admin_exec(bench->admin, sql);
}

static void agree(Bench *bench)
{
    Error err = {0};
    if (!archive_clocks_agree(&bench->archive, &err)) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(
        admin_value(
            bench->admin, "SELECT coalesce(clock_fault, 'none') FROM archive.installation"),
        "none");
}

static void refuse(Bench *bench, const char *part)
{
    Error err = {0};
    assert_false(archive_clocks_agree(&bench->archive, &err));
    assert_non_null(strstr(err.text, part));
    assert_string_equal(
        admin_value(bench->admin, "SELECT clock_fault FROM archive.installation"), err.text);
}

static void nothing_stored_is_no_witness(void **state)
{
    Bench *bench = *state;
    agree(bench);
    admin_exec(bench->admin, "INSERT INTO archive.log_positions (stream) VALUES ('STATUS')");
    agree(bench);
}

static void the_newest_message_of_the_active_streams_is_the_witness(void **state)
{
    Bench *bench = *state;
    stored(bench, "STATUS", "-20 days", "true");
    refuse(bench, "the newest stored message is of ");
    stored(bench, "INBOUND", "-1 hour", "false"); // it is not stored any more
    refuse(bench, "the newest stored message is of ");
    stored(bench, "AUDIT", "-13 days", "true");
    agree(bench);
    stored(bench, "CONFIG", "7 years", "true");
    refuse(bench, "NATS stored a message of 'CONFIG'");
}

#define ENTRIES \
    "SELECT count(*) FROM archive.journal WHERE what = 'clocks disagree' AND unit IS NULL AND " \
    "detail->>'fault' LIKE 'nothing is deleted%'"

static void a_refusal_is_in_the_journal_once_a_day(void **state)
{
    Bench *bench = *state;
    stored(bench, "STATUS", "-1 year", "true");
    refuse(bench, "newest");
    refuse(bench, "newest");
    assert_string_equal(admin_value(bench->admin, ENTRIES), "1");
    admin_exec(bench->admin, "UPDATE archive.journal SET at = at - interval '21 hours'");
    refuse(bench, "newest");
    assert_string_equal(admin_value(bench->admin, ENTRIES), "2");
    // Noted while Postgres's clock was ahead: it does not silence what comes after.
    admin_exec(bench->admin, "UPDATE archive.journal SET at = at + interval '7 years'");
    refuse(bench, "newest");
    assert_string_equal(admin_value(bench->admin, ENTRIES), "3");
}

// ---- segments and requests ----

static void held(Bench *bench, const char *tenants, const char *wanted)
{
    char sql[128];
    (void)snprintf(
        sql, sizeof sql, "SELECT coalesce(archive.segment_held(%s), 'none')", tenants);
    assert_string_equal(admin_value(bench->admin, sql), wanted);
}

static void a_hold_keeps_each_segment_that_has_its_tenant(void **state)
{
    Bench *bench = *state;
    admin_exec(
        bench->admin,
        "DELETE FROM archive.holds; INSERT INTO archive.holds (tenant, subject, ground, held_by, "
        "until, released_at) OVERRIDING SYSTEM VALUE VALUES ('acme', NULL, 'over', 'kim', now(), "
        "NULL), ('acme', NULL, 'released', 'kim', NULL, now())");
    held(bench, "ARRAY['acme', 'beta']", "none");
    held(bench, "NULL", "none");
    admin_exec(
        bench->admin,
        "INSERT INTO archive.holds (id, tenant, subject, ground, held_by) OVERRIDING SYSTEM VALUE "
        "VALUES (77, 'acme', decode(repeat('ab', 16), 'hex'), 'case 7', 'kim')");
    held(bench, "ARRAY['beta', 'acme']", "hold 77 of kim: case 7");
    held(bench, "NULL", "hold 77 of kim: case 7"); // whose it is, is not known
    held(bench, "ARRAY['beta']", "none");
    admin_exec(bench->admin, "DELETE FROM archive.holds");
}

static void requests_that_ended_90_days_ago_go(void **state)
{
    Bench *bench = *state;
    admin_exec(
        bench->admin,
        "TRUNCATE archive.requests, archive.restores, archive.units CASCADE; INSERT INTO "
        "archive.units (id, kind, class, starts_at, ends_at, owner_epoch) VALUES ('u', 'n', 'R', "
        "'2025-01-01', '2025-02-01', 0); INSERT INTO archive.requests (id, kind, argument, "
        "requested_by, requested_at, state, ended_at) OVERRIDING SYSTEM VALUE SELECT n, 'run', "
        "'{}', 'x', now() - interval '1 year', s, now() - age FROM (VALUES (1, 'done', interval "
        "'91 days'), (2, 'failed', '91 days'), (3, 'done', '89 days'), (4, 'waiting', NULL), (5, "
        "'running', NULL), (6, 'done', '91 days')) v (n, s, age); INSERT INTO archive.restores "
        "(unit, request, until) VALUES ('u', 6, now())");
    assert_string_equal(admin_value(bench->admin, "SELECT archive.prune_requests()"), "2");
    assert_string_equal(
        admin_value(bench->admin, "SELECT string_agg(id::text, ',' ORDER BY id) FROM archive.requests"),
        "3,4,5,6");
    admin_exec(bench->admin, "TRUNCATE archive.requests, archive.restores, archive.units CASCADE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_stored_is_no_witness, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_newest_message_of_the_active_streams_is_the_witness, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_refusal_is_in_the_journal_once_a_day, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_hold_keeps_each_segment_that_has_its_tenant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_that_ended_90_days_ago_go, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
