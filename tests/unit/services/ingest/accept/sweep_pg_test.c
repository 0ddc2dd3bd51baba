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

static bool leave_row(Scene *s, int64_t accept_id)
{
    Frame frame = {.kind = FRAME_REQUEST, .out = {.subject = "ntf.request.normal.acme"}};
    PublishedRow row = {
        .accept_id = accept_id, .tenant = STR("acme"), .frames = &frame, .count = 1};
    return row_publisher_send(s->publisher, ROW_PUBLISHER_PENDING_MAX, &row);
}

static SweepOptions quick(Scene *s)
{
    return (SweepOptions){
        .loop = &s->loop,
        .pool = s->pool,
        .publisher = s->publisher,
        .metrics = &s->metrics,
        .every_ms = 100,
        .older_than_ms = 1000,
    };
}

static void rows_left_are_known_by_their_ids_up_to_a_bound(void **state)
{
    Scene *s = *state;
    SweepOptions options = quick(s);
    s->sweep = sweep_new(&options);
    int64_t ids[ROW_PUBLISHER_LEFT_MAX];
    assert_false(row_publisher_has_ids(s->publisher));
    for (int64_t id = 1; id <= ROW_PUBLISHER_LEFT_MAX + 3; id++) {
        assert_false(leave_row(s, id)); // NATS is away
    }
    assert_true(row_publisher_take_left(s->publisher));
    assert_int_equal(row_publisher_take_ids(s->publisher, ids, 2), 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(
        row_publisher_take_ids(s->publisher, ids, ROW_PUBLISHER_LEFT_MAX),
        ROW_PUBLISHER_LEFT_MAX - 2);
    assert_int_equal(ids[0], 3);
    assert_false(row_publisher_has_ids(s->publisher));
}

// Whatever the ids say: a row that was published, or that another sweep has, is not claimed.
static void rows_left_are_claimed_once_however_young(void **state)
{
    Scene *s = *state;
    SweepOptions options = quick(s);
    options.every_ms = 60 * 1000;
    s->sweep = sweep_new(&options);
    admin_exec(s->admin, "TRUNCATE ingest.accept_log RESTART IDENTITY");
    admin_exec(
        s->admin,
        "INSERT INTO ingest.accept_log (tenant_id, accepted_at, notification_ids, events,"
        " published_at) SELECT 'acme', now(), '{ntf_1}', '\\x01', CASE n WHEN 2 THEN now() END"
        " FROM generate_series(1, 4) n");
    static const char claim[] = "SELECT string_agg(accept_id::text, ',') FROM"
                                " ingest.claim_left('{4,1,2,9}', interval '1 minute')";
    assert_string_equal(admin_value(s->admin, claim), "1,4");
    assert_string_equal(admin_value(s->admin, claim), "");
    assert_string_equal(
        admin_value(s->admin, "SELECT count(*) FROM ingest.claim_unpublished('0', '1 min', 10)"),
        "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            more_old_counters_than_one_turn_forgets_are_forgotten_in_the_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            rows_left_are_known_by_their_ids_up_to_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            rows_left_are_claimed_once_however_young, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
