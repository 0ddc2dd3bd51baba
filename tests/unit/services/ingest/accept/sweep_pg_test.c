// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/ingest/accept/sweep.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Scene {
    uv_loop_t loop;
    PGconn *admin;
    DbPool *pool;
    Metrics *registry;
    IngestMetrics metrics;
    Bus *bus;
    RowPublisher *publisher;
    Sweep *sweep;
    int open;
    bool closed;
} Scene;

static int set_up(void **state)
{
    Scene *s = calloc(1, sizeof *s);
    uv_loop_init(&s->loop);
    s->admin = admin_connect();
    char url[512];
    url_with("&user=stentor_ingest", url, sizeof url);
    s->pool = db_pool_new(
        &s->loop, &(DbPoolOptions){.url = url, .application_name = "sweep-test", .connections = 2});
    s->registry = metrics_new();
    ingest_metrics_init(&s->metrics, s->registry);
    BusOptions bus = {.url = "nats://127.0.0.1:1", .name = "test", .service = "stentor-ingest"};
    s->bus = bus_open(&s->loop, &bus, NULL);
    s->publisher = row_publisher_new(s->bus, s->pool, &s->metrics);
    *state = s;
    return 0;
}

static void on_part_closed(void *ctx)
{
    Scene *s = ctx;
    s->closed = --s->open == 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    sweep_stop(s->sweep);
    while (!sweep_idle(s->sweep)) {
        uv_run(&s->loop, UV_RUN_ONCE);
    }
    s->open = 2;
    sweep_free(s->sweep, on_part_closed, s);
    bus_close(s->bus, on_part_closed, s);
    assert_true(run_for(&s->loop, &s->closed, true, WAIT_MS));
    row_publisher_free(s->publisher);
    s->closed = false;
    s->open = 1;
    db_pool_close(s->pool, on_part_closed, s);
    assert_true(run_for(&s->loop, &s->closed, true, WAIT_MS));
    PQfinish(s->admin);
    metrics_free(s->registry);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

// A campaign to a million inline addresses leaves a million counters of recipients' limits.
static void more_old_counters_than_one_turn_forgets_are_forgotten_in_the_next(void **state)
{
    Scene *s = *state;
    admin_exec(s->admin, "TRUNCATE ingest.gate_counters");
    admin_exec(
        s->admin, "INSERT INTO ingest.gate_counters SELECT 'acme', 'hash' || n, 1, 1, 1, 1, 1, 1 "
                  "FROM generate_series(1, 12000) n");
    s->sweep = sweep_new(&(SweepOptions){
        .loop = &s->loop,
        .pool = s->pool,
        .publisher = s->publisher,
        .metrics = &s->metrics,
        .every_ms = 100,
        .older_than_ms = 1000,
    });
    int64_t until_us = clock_mono_us() + WAIT_MS * INT64_C(1000);
    const char *left = "";
    bool never = false;
    do {
        (void)run_for(&s->loop, &never, true, 100);
        left = admin_value(s->admin, "SELECT count(*) FROM ingest.gate_counters");
    } while (strcmp(left, "0") != 0 && clock_mono_us() < until_us);
    assert_string_equal(left, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            more_old_counters_than_one_turn_forgets_are_forgotten_in_the_next, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
