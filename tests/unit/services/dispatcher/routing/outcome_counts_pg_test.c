// SPDX-License-Identifier: Apache-2.0
// Two dispatchers count together in one real Postgres.
#include "services/dispatcher/routing/outcome_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Seen {
    int count;
    bool poor;
    int percent;
} Seen;

typedef struct Stage {
    Fixture *fx;
    OutcomeCounts *two[2];
    Seen postmark, sendgrid;
    int64_t now_us;
} Stage;

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatcher", NULL};
    migrate_these(schemas);
    return 0;
}

static void on_compared(
    void *ctx, Str owner, Str vendor, bool poor, int percent, int64_t since_poor_us)
{
    Stage *stage = ctx;
    assert_true(str_eq(owner, STR("acme")) && since_poor_us >= 0);
    Seen *seen = str_eq(vendor, STR("postmark")) ? &stage->postmark : &stage->sendgrid;
    *seen = (Seen){seen->count + 1, poor, percent};
}

static int up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    char url[256];
    stage->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_dispatcher", url, sizeof url), .connections = 2});
    admin_exec(stage->fx->admin, "TRUNCATE dispatcher.vendor_outcomes");
    for (int i = 0; i < 2; i++) {
        stage->two[i] = outcome_counts_new(stage->fx->pool, on_compared, stage);
    }
    stage->now_us = 1;
    *state = stage;
    return 0;
}

static int down(void **state)
{
    Stage *stage = *state;
    outcome_counts_free(stage->two[0]);
    outcome_counts_free(stage->two[1]);
    fixture_free(stage->fx);
    free(stage);
    return 0;
}

static void note(Stage *stage, int which, const char *vendor, VendorReport report, int count)
{
    for (int i = 0; i < count; i++) {
        outcome_counts_note(stage->two[which], STR("acme"), str_from(vendor), report);
    }
}

// Until it has compared once more.
static void compare(Stage *stage, int which)
{
    int before = stage->sendgrid.count;
    stage->now_us += (DELIVERY_COMPARE_S + 1) * INT64_C(1000000);
    outcome_counts_tick(stage->two[which], stage->now_us);
    for (int i = 0; stage->sendgrid.count == before && i < 400; i++) {
        run_ms(&stage->fx->loop, 20);
    }
    assert_int_equal(stage->sendgrid.count, before + 1);
}

static void dispatchers_count_together(void **state)
{
    Stage *stage = *state;
    note(stage, 0, "postmark", REPORT_FAILED, 6);
    note(stage, 0, "sendgrid", REPORT_DELIVERED, 30);
    compare(stage, 0);
    assert_false(stage->postmark.poor); // six say nothing
    note(stage, 1, "postmark", REPORT_FAILED, 4);
    note(stage, 1, "postmark", REPORT_DELIVERED, 30);
    note(stage, 1, "postmark", REPORT_ENDED, 100);
    compare(stage, 1);
    assert_true(stage->postmark.poor);
    assert_int_equal(stage->postmark.percent, 25);
    assert_false(stage->sendgrid.poor);
}

static void what_was_taken_and_never_reported_counts_after_five_minutes(void **state)
{
    Stage *stage = *state;
    note(stage, 0, "sendgrid", REPORT_DELIVERED, 30);
    note(stage, 0, "postmark", REPORT_DELIVERED, 1);
    note(stage, 0, "postmark", REPORT_TAKEN, 100);
    compare(stage, 0);
    assert_int_equal(stage->postmark.percent, 0);
    admin_exec(
        stage->fx->admin,
        "UPDATE dispatcher.vendor_outcomes SET minute = minute - interval '10 minutes'"
        " WHERE vendor = 'postmark'");
    compare(stage, 0);
    assert_true(stage->postmark.poor);
    assert_int_equal(stage->postmark.percent, 99);
}

static void rows_of_the_day_before_go(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->fx->admin, "INSERT INTO dispatcher.vendor_outcomes VALUES"
                          " (now() - interval '25 hours', 'acme', 'postmark', 1, 1, 1, 1)");
    note(stage, 0, "sendgrid", REPORT_DELIVERED, 1);
    compare(stage, 0);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT string_agg(vendor, ' ') FROM dispatcher.vendor_outcomes"),
        "sendgrid");
}

static void what_postgres_did_not_take_is_added_later(void **state)
{
    Stage *stage = *state;
    note(stage, 0, "sendgrid", REPORT_DELIVERED, 7);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.vendor_outcomes RENAME TO gone");
    stage->now_us += (DELIVERY_COMPARE_S + 1) * INT64_C(1000000);
    outcome_counts_tick(stage->two[0], stage->now_us);
    run_ms(&stage->fx->loop, 1000);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.gone RENAME TO vendor_outcomes");
    assert_int_equal(stage->sendgrid.count, 0);
    note(stage, 0, "sendgrid", REPORT_DELIVERED, 1);
    compare(stage, 0);
    assert_string_equal(
        admin_value(stage->fx->admin, "SELECT delivered FROM dispatcher.vendor_outcomes"), "8");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
    const struct CMUnitTest tests[] = {
        TEST(dispatchers_count_together),
        TEST(what_was_taken_and_never_reported_counts_after_five_minutes),
        TEST(rows_of_the_day_before_go),
        TEST(what_postgres_did_not_take_is_added_later),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
