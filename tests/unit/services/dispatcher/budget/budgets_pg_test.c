// SPDX-License-Identifier: Apache-2.0
// Several dispatchers with one real Postgres, each with more mails than its part of the limit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/dispatcher/budget/budgets.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

enum { REPLICAS_MAX = 4, SENDS_MAX = 20000, POLL_MS = 2 };

typedef struct Stage Stage;

typedef struct Replica {
    Stage *stage;
    Metrics *metrics;
    Budgets *budgets;
    char name[8];
    uv_timer_t timer;
    bool sending;
} Replica;

struct Stage {
    Fixture *fx;
    Replica replicas[REPLICAS_MAX];
    size_t count;
    int64_t per_s, per_day;
    Priority lane;
    uint32_t waiting;
    int64_t sent_us[SENDS_MAX];
    size_t sent;
    size_t closed;
};

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatcher", NULL};
    migrate_these(schemas);
    return 0;
}

static int stage_up(void **state)
{
    Stage *stage = calloc(1, sizeof *stage);
    char url[256];
    stage->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_dispatcher", url, sizeof url), .connections = 2});
    admin_exec(stage->fx->admin, "TRUNCATE dispatcher.budget");
    stage->lane = PRIORITY_NORMAL;
    stage->waiting = 1000;
    *state = stage;
    return 0;
}

static void on_closed(void *ctx)
{
    Stage *stage = ctx;
    stage->closed++;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Stage *stage = ((Replica *)handle->data)->stage;
    stage->closed++;
}

static int stage_down(void **state)
{
    Stage *stage = *state;
    stage->closed = 0;
    for (size_t i = 0; i < stage->count; i++) {
        budgets_close(stage->replicas[i].budgets, on_closed, stage);
        uv_close((uv_handle_t *)&stage->replicas[i].timer, on_timer_closed);
    }
    for (int i = 0; stage->closed < 2 * stage->count && i < 200; i++) {
        run_ms(&stage->fx->loop, 50);
    }
    assert_int_equal(stage->closed, 2 * stage->count);
    for (size_t i = 0; i < stage->count; i++) {
        budgets_free(stage->replicas[i].budgets);
        metrics_free(stage->replicas[i].metrics);
    }
    fixture_free(stage->fx);
    free(stage);
    return 0;
}

static bool take(Replica *replica)
{
    Stage *stage = replica->stage;
    int64_t at_us = 0;
    return budgets_take(
        replica->budgets, STR("acme|sendgrid|main"), stage->per_s, stage->per_day, stage->lane,
        stage->waiting, &at_us);
}

static void on_poll(uv_timer_t *timer)
{
    Replica *replica = timer->data;
    Stage *stage = replica->stage;
    while (replica->sending && stage->sent < SENDS_MAX && take(replica)) {
        stage->sent_us[stage->sent++] = clock_mono_us();
    }
}

static void start(Stage *stage, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Replica *replica = &stage->replicas[stage->count++];
        (void)snprintf(replica->name, sizeof replica->name, "d%zu", stage->count);
        replica->stage = stage;
        replica->metrics = metrics_new();
        replica->budgets = budgets_new(stage->fx->pool, replica->name, replica->metrics);
        replica->sending = true;
        replica->timer.data = replica;
        (void)uv_timer_init(&stage->fx->loop, &replica->timer);
        (void)uv_timer_start(&replica->timer, on_poll, 1, POLL_MS);
    }
}

static size_t most_in(const Stage *stage, int64_t window_us)
{
    size_t most = 0;
    size_t first = 0;
    for (size_t i = 0; i < stage->sent; i++) {
        while (stage->sent_us[i] - stage->sent_us[first] >= window_us) {
            first++;
        }
        most = i - first + 1 > most ? i - first + 1 : most;
    }
    return most;
}

// Runs until so many were sent, or the time is up; gives how long it took.
static int64_t run_until_sent(Stage *stage, size_t wanted, int64_t most_ms)
{
    int64_t began_us = clock_mono_us();
    while (stage->sent < wanted && clock_mono_us() - began_us < most_ms * 1000) {
        run_ms(&stage->fx->loop, 20);
    }
    return clock_mono_us() - began_us;
}

static void four_dispatchers_together_keep_a_limit_of_a_hundred_a_second(void **state)
{
    Stage *stage = *state;
    stage->per_s = 100;
    start(stage, 4);
    int64_t took_us = run_until_sent(stage, 400, 60000);
    assert_true(stage->sent >= 400);
    // Never more than the limit, but for what one lease may be ahead by its grace.
    assert_true((double)stage->sent <= 100.0 * (double)took_us / 1e6 + 12);
    size_t most = most_in(stage, 1000000);
    print_message("400 sends in %.2f s, at most %zu in a second\n", (double)took_us / 1e6, most);
    assert_true(most <= 112);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(budgets_replicas(stage->replicas[i].budgets), 4);
    }
}

static void one_dispatcher_gets_what_the_others_do_not_use(void **state)
{
    Stage *stage = *state;
    stage->per_s = 100;
    start(stage, 3);
    stage->replicas[1].sending = stage->replicas[2].sending = false;
    int64_t took_us = run_until_sent(stage, 200, 60000);
    print_message("200 sends of one of three in %.2f s\n", (double)took_us / 1e6);
    assert_true(stage->sent >= 200);
    assert_true(most_in(stage, 1000000) <= 112);
}

static void a_limit_below_the_number_of_dispatchers_is_kept_too(void **state)
{
    Stage *stage = *state;
    stage->per_s = 2;
    start(stage, 4);
    int64_t took_us = run_until_sent(stage, 6, 60000);
    assert_true(stage->sent >= 6);
    assert_true((double)stage->sent <= 2.0 * (double)took_us / 1e6 + 2);
    assert_true(most_in(stage, 1000000) <= 3);
}

static void a_limit_of_a_day_is_kept_beside_that_of_a_second(void **state)
{
    Stage *stage = *state;
    stage->per_s = 1000;
    stage->per_day = 86400 * 20; // 20/s
    start(stage, 2);
    int64_t took_us = run_until_sent(stage, 60, 60000);
    assert_true(stage->sent >= 60);
    assert_true((double)stage->sent <= 20.0 * (double)took_us / 1e6 + 12);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT string_agg(key, ' ' ORDER BY key) FROM dispatcher.budget "
                              "WHERE key NOT LIKE 'replica|%'"),
        "acme|sendgrid|main|day acme|sendgrid|main|s");
}

static void what_one_is_refused_slows_all_down_and_is_forgotten_slowly(void **state)
{
    Stage *stage = *state;
    stage->per_s = 100;
    start(stage, 2);
    (void)run_until_sent(stage, 20, 30000);
    budgets_throttled(stage->replicas[0].budgets, STR("acme|sendgrid|main"), 1500);
    budgets_throttled(
        stage->replicas[1].budgets, STR("acme|sendgrid|main"), 1500); // the same moment
    budgets_throttled(stage->replicas[0].budgets, STR("unknown"), 1500);
    int64_t throttled_us = clock_mono_us();
    run_ms(&stage->fx->loop, 100);
    assert_string_equal(
        admin_value(
            stage->fx->admin,
            "SELECT round(penalty::numeric, 2) FROM dispatcher.budget WHERE key LIKE 'acme%'"),
        "0.70");
    size_t before = stage->sent;
    (void)run_until_sent(stage, before + 40, 30000);
    assert_true(stage->sent >= before + 40);
    assert_true(stage->sent_us[before] - throttled_us >= 1400000); // not before the vendor's word
    double span_s = (double)(stage->sent_us[before + 39] - stage->sent_us[before]) / 1e6;
    assert_true(span_s >= 39 / 70.0 - 0.15); // 70/s
    admin_exec(
        stage->fx->admin, "UPDATE dispatcher.budget SET penalty_until = now() - interval '71 "
                          "seconds' WHERE key LIKE 'acme%'");
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT dispatcher.budget_pace(penalty, penalty_until) FROM "
                              "dispatcher.budget WHERE key LIKE 'acme%'"),
        "1");
}

static void without_postgres_nothing_begins(void **state)
{
    Stage *stage = *state;
    stage->per_s = 100;
    start(stage, 1);
    (void)run_until_sent(stage, 5, 30000);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.budget RENAME TO gone");
    run_ms(&stage->fx->loop, 1500); // what was leased is over
    size_t before = stage->sent;
    run_ms(&stage->fx->loop, 500);
    assert_int_equal(stage->sent, before);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.gone RENAME TO budget");
    (void)run_until_sent(stage, before + 5, 30000);
    assert_true(stage->sent >= before + 5);
}

static void each_dispatcher_has_one_row_and_old_ones_go(void **state)
{
    Stage *stage = *state;
    admin_exec(
        stage->fx->admin, "INSERT INTO dispatcher.budget (key, tat) VALUES ('replica|old', now() - "
                          "interval '2 hours'),"
                          " ('replica|quiet', now() - interval '20 seconds')");
    stage->per_s = 1;
    start(stage, 2);
    for (int i = 0; i < 400 && budgets_replicas(stage->replicas[0].budgets) < 2; i++) {
        run_ms(&stage->fx->loop, 50);
    }
    assert_int_equal(budgets_replicas(stage->replicas[0].budgets), 2);
    assert_string_equal(
        admin_value(
            stage->fx->admin, "SELECT string_agg(key, ' ' ORDER BY key) FROM dispatcher.budget "
                              "WHERE key LIKE 'replica|%'"),
        "replica|d1 replica|d2 replica|quiet");
}

typedef struct Verdict {
    int count;
    bool granted;
    int64_t again_in_us;
} Verdict;

static void on_claimed(void *ctx, bool granted, int64_t again_in_us)
{
    Verdict *answer = ctx;
    *answer = (Verdict){answer->count + 1, granted, again_in_us};
}

static Verdict claim(Stage *stage, size_t replica, int64_t every_us, int64_t most_us)
{
    Verdict answer = {0};
    budgets_claim(
        stage->replicas[replica].budgets, STR("probe|acme/postmark/main"), every_us, most_us,
        on_claimed, &answer);
    for (int i = 0; answer.count == 0 && i < 600; i++) {
        run_ms(&stage->fx->loop, 20);
    }
    assert_int_equal(answer.count, 1);
    return answer;
}

static void a_right_is_one_dispatchers_until_its_time_is_over(void **state)
{
    Stage *stage = *state;
    enum { HOUR = 3600 };
    const int64_t hour_us = HOUR * INT64_C(1000000);
    start(stage, 2);
    assert_true(claim(stage, 0, 30000000, hour_us).granted);
    Verdict refused = claim(stage, 1, 30000000, hour_us);
    assert_false(refused.granted);
    assert_in_range(refused.again_in_us, 1, 30000000);
    admin_exec(
        stage->fx->admin, "UPDATE dispatcher.budget SET tat = now() WHERE key LIKE 'probe%'");
    assert_true(claim(stage, 1, 30000000, hour_us).granted);
    assert_false(claim(stage, 0, 30000000, hour_us).granted);
}

static void a_right_that_is_anothers_for_very_long_is_taken_over(void **state)
{
    Stage *stage = *state;
    start(stage, 2);
    assert_true(claim(stage, 0, 900000000, 1800000000).granted);
    assert_false(claim(stage, 1, 5000000, 1800000000).granted);
    assert_true(claim(stage, 1, 5000000, 60000000).granted);
    Verdict refused = claim(stage, 0, 5000000, 60000000);
    assert_false(refused.granted); // of those that take it over one is enough
    assert_in_range(refused.again_in_us, 1, 5000000);
}

static void without_postgres_a_right_is_refused(void **state)
{
    Stage *stage = *state;
    start(stage, 1);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.budget RENAME TO gone");
    Verdict refused = claim(stage, 0, 5000000, 60000000);
    admin_exec(stage->fx->admin, "ALTER TABLE dispatcher.gone RENAME TO budget");
    assert_false(refused.granted);
    assert_int_equal(refused.again_in_us, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, stage_up, stage_down)
    const struct CMUnitTest tests[] = {
        TEST(four_dispatchers_together_keep_a_limit_of_a_hundred_a_second),
        TEST(one_dispatcher_gets_what_the_others_do_not_use),
        TEST(a_limit_below_the_number_of_dispatchers_is_kept_too),
        TEST(a_limit_of_a_day_is_kept_beside_that_of_a_second),
        TEST(what_one_is_refused_slows_all_down_and_is_forgotten_slowly),
        TEST(without_postgres_nothing_begins),
        TEST(each_dispatcher_has_one_row_and_old_ones_go),
        TEST(a_right_is_one_dispatchers_until_its_time_is_over),
        TEST(a_right_that_is_anothers_for_very_long_is_taken_over),
        TEST(without_postgres_a_right_is_refused),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
