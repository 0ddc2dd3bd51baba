// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/trace/stage.h"

static const char PARENT[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
static const char QUIET[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
static const int64_t HOUR_US = INT64_C(3600000000);

typedef struct Fixture {
    uv_loop_t loop;
    Tracer *tracer;
    Arena *arena;
    StageSpan span;
    bool freed;
} Fixture;

static void on_freed(void *ctx)
{
    ((Fixture *)ctx)->freed = true;
}

// Nothing is posted: no loop runs before the end, and the port is closed then.
static int set_up(void **state)
{
    static Fixture f;
    f = (Fixture){
        .arena = arena_new(0),
        .span = {
            .name = "render",
            .kind = SPAN_INTERNAL,
            .traceparent = str_from(PARENT),
            .notification_id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            .tenant = STR("acme"),
            .event_id = STR("c2VhbGVkLWluLTIwMjYuLi"),
            .started_at_us = 1000,
            .ended_at_us = 2000,
        }};
    TracerOptions options = {
        .endpoint = "http://127.0.0.1:1",
        .traces_endpoint = "",
        .headers = "",
        .sampler = "parentbased_traceidratio",
        .sampler_argument = "0",
        .resource_attributes = "",
        .service_name = "",
        .program = "test",
        .version = "0",
        .instance = "i",
    };
    Error err = {0};
    uv_loop_init(&f.loop);
    assert_true(tracer_new(&f.loop, &options, &f.tracer, &err));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    tracer_free(f->tracer, on_freed, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->freed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    arena_free(f->arena);
    return 0;
}

static size_t waiting(const Fixture *f)
{
    return tracer_stats(f->tracer).waiting;
}

static void a_sampled_stage_is_one_span_and_a_link_of_its_batch(void **state)
{
    Fixture *f = *state;
    TraceBatch batch = {.count = 0};
    trace_stage(f->tracer, &batch, &f->span);
    assert_int_equal(waiting(f), 1);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.links[0].trace_id[0], 0x0a);
    BatchSpan of = {.name = "render batch", .stream = "REQUEST_LOW", .sequence = 7, .messages = 3};
    trace_batch(f->tracer, &batch, &of);
    assert_int_equal(waiting(f), 2);
}

static void nothing_is_made_of_what_is_not_sampled(void **state)
{
    Fixture *f = *state;
    TraceBatch batch = {.count = 0};
    f->span.traceparent = STR_EMPTY;
    trace_stage(f->tracer, &batch, &f->span);
    f->span.traceparent = str_from(QUIET);
    trace_stage(f->tracer, &batch, &f->span);
    trace_stage(NULL, &batch, &f->span);
    BatchSpan of = {.name = "render batch", .stream = "REQUEST_LOW"};
    trace_batch(f->tracer, &batch, &of);
    assert_int_equal(waiting(f), 0);
}

static void what_failed_was_repeated_or_slow_is_kept_with_an_accept(void **state)
{
    Fixture *f = *state;
    f->span.traceparent = STR_EMPTY;
    StageSpan failed = f->span, repeated = f->span, slow = f->span;
    failed.failed = true;
    repeated.keep = true;
    slow.ended_at_us = slow.started_at_us + TRACER_SLOW_US + 1;
    trace_stage(f->tracer, NULL, &failed);
    assert_int_equal(waiting(f), 2);
    trace_stage(f->tracer, NULL, &repeated);
    trace_stage(f->tracer, NULL, &slow);
    assert_int_equal(waiting(f), 6);
}

static void a_batch_has_as_many_links_as_fit_and_counts_the_others(void **state)
{
    Fixture *f = *state;
    TraceBatch batch = {.count = 0};
    for (size_t i = 0; i < SPAN_LINKS_MAX + 3; i++) {
        trace_stage(f->tracer, &batch, &f->span);
    }
    assert_int_equal(batch.count, SPAN_LINKS_MAX + 3);
}

static void after_an_hour_the_work_goes_on_in_a_new_trace(void **state)
{
    Fixture *f = *state;
    TraceWait wait = {
        .traceparent = str_from(PARENT),
        .notification_id = f->span.notification_id,
        .tenant = f->span.tenant,
        .event_id = f->span.event_id,
        .since_us = HOUR_US,
        .until_us = 2 * HOUR_US,
    };
    assert_true(str_eq(trace_resume(f->tracer, &wait, f->arena), str_from(PARENT)));
    assert_int_equal(waiting(f), 0);
    wait.until_us++;
    Str later = trace_resume(f->tracer, &wait, f->arena);
    TraceContext context;
    assert_true(trace_parse(later, &context));
    assert_int_not_equal(context.trace_id[0], 0x0a);
    assert_true(context.sampled);
    assert_int_equal(waiting(f), 1); // `due`, with a link
    assert_true(str_eq(trace_resume(f->tracer, &wait, f->arena), later));
    // Without a tracer, or not sampled, nothing changes.
    assert_true(str_eq(trace_resume(NULL, &wait, f->arena), str_from(PARENT)));
    wait.traceparent = STR_EMPTY;
    assert_int_equal(trace_resume(f->tracer, &wait, f->arena).len, 0);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH(a_sampled_stage_is_one_span_and_a_link_of_its_batch),
        WITH(nothing_is_made_of_what_is_not_sampled),
        WITH(what_failed_was_repeated_or_slow_is_kept_with_an_accept),
        WITH(a_batch_has_as_many_links_as_fit_and_counts_the_others),
        WITH(after_an_hour_the_work_goes_on_in_a_new_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
