// SPDX-License-Identifier: Apache-2.0
// The exporter against a real HTTP server on the same loop.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/clock.h"
#include "common/http/server.h"
#include "common/trace/tracer.h"
#include "otlp/trace.pb-c.h"

enum { PATIENCE_US = 20 * 1000 * 1000, UNPACKED_MAX = 8 * 1024 * 1024 };

typedef struct Stage {
    uv_loop_t loop;
    uv_timer_t tick; // so that uv_run returns when nothing comes
    HttpServer *collector;
    Tracer *tracer;
    char url[64];
    int answers[8]; // a status for each post; 0: the usual
    const char *retry_after;
    bool silent; // answers nothing
    HttpRequest *held;
    unsigned posts;
    size_t spans; // that were taken
    char header[64], encoding[16], first_name[64];
    bool freed;
} Stage;

static void read_spans(Stage *s, Str body)
{
    uint8_t *bytes = malloc(UNPACKED_MAX);
    z_stream stream = {0};
    stream.next_in = (Bytef *)(uintptr_t)body.ptr;
    stream.avail_in = (uInt)body.len;
    stream.next_out = bytes;
    stream.avail_out = UNPACKED_MAX;
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    Otlp__TracesRequest *request =
        otlp__traces_request__unpack(NULL, UNPACKED_MAX - stream.avail_out, bytes);
    assert_non_null(request);
    const Otlp__ScopeSpans *scope = request->resource_spans[0]->scope_spans[0];
    s->spans += scope->n_spans;
    snprintf(s->first_name, sizeof s->first_name, "%s", scope->spans[0]->name);
    otlp__traces_request__free_unpacked(request, NULL);
    inflateEnd(&stream);
    free(bytes);
}

static void on_post(void *ctx, HttpRequest *request)
{
    Stage *s = ctx;
    unsigned n = s->posts < 7 ? s->posts : 7;
    int status = s->answers[n] != 0 ? s->answers[n] : 200;
    s->posts++;
    if (s->silent) {
        s->held = request;
        return;
    }
    assert_true(str_eq(request->path, STR("/v1/traces")));
    str_to_c(http_header(request, "X-Key"), s->header, sizeof s->header);
    str_to_c(http_header(request, "Content-Encoding"), s->encoding, sizeof s->encoding);
    if (status == 200) {
        read_spans(s, request->body);
    } else if (s->retry_after != NULL) {
        http_response_header(request, "Retry-After", str_from(s->retry_after));
    }
    http_respond(request, status, "application/x-protobuf", STR_EMPTY);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static TracerOptions options_of(Stage *s)
{
    return (TracerOptions){
        .endpoint = s->url,
        .traces_endpoint = "",
        .headers = "X-Key=a%20key",
        .sampler = "parentbased_always_on",
        .sampler_argument = "",
        .resource_attributes = "team=one",
        .service_name = "",
        .program = "stentor-test",
        .version = "0",
        .instance = "i",
    };
}

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    Error err = {0};
    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->tick);
    uv_timer_start(&s->tick, on_tick, 10, 10);
    HttpServerOptions options = {
        .bind = "127.0.0.1", .body_max = UNPACKED_MAX, .handler = on_post, .ctx = s};
    s->collector = http_server_new(&s->loop, &options, &err);
    assert_non_null(s->collector);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/", http_server_port(s->collector));
    TracerOptions tracer = options_of(s);
    assert_true(tracer_new(&s->loop, &tracer, &s->tracer, &err));
    assert_non_null(s->tracer);
    *state = s;
    return 0;
}

static void on_freed(void *ctx)
{
    ((Stage *)ctx)->freed = true;
}

static void free_tracer(Stage *s)
{
    int64_t end_us = clock_mono_us() + PATIENCE_US;
    s->freed = false;
    tracer_free(s->tracer, on_freed, s);
    s->tracer = NULL;
    while (!s->freed) {
        uv_run(&s->loop, UV_RUN_ONCE);
        assert_true(clock_mono_us() < end_us);
    }
}

static int tear_down(void **state)
{
    Stage *s = *state;
    if (s->tracer != NULL) {
        free_tracer(s);
    }
    s->freed = false;
    http_server_free(s->collector, on_freed, s);
    if (s->held != NULL) {
        http_respond(s->held, 200, "text/plain", STR_EMPTY);
    }
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

static void add(Stage *s, size_t count)
{
    const SpanAttribute attribute = SPAN_CSTR("stentor.template", "welcome");
    const Span span = {
        .name = "accept",
        .kind = SPAN_SERVER,
        .context = {.trace_id = {1}, .span_id = {2}, .sampled = true},
        .started_at_us = 1,
        .ended_at_us = 2,
        .attributes = &attribute,
        .attribute_count = 1,
    };
    for (size_t i = 0; i < count; i++) {
        tracer_add(s->tracer, &span);
    }
}

static void run_until_exported(Stage *s, uint64_t count)
{
    int64_t end_us = clock_mono_us() + PATIENCE_US;
    while (tracer_stats(s->tracer).exported < count) {
        uv_run(&s->loop, UV_RUN_ONCE);
        assert_true(clock_mono_us() < end_us);
    }
}

static void a_full_batch_is_posted_at_once(void **state)
{
    Stage *s = *state;
    add(s, TRACER_BATCH_MAX);
    run_until_exported(s, TRACER_BATCH_MAX);
    assert_int_equal(s->posts, 1);
    assert_int_equal(s->spans, TRACER_BATCH_MAX);
    assert_string_equal(s->header, "a key");
    assert_string_equal(s->encoding, "gzip");
    assert_string_equal(s->first_name, "accept");
    assert_int_equal(tracer_stats(s->tracer).waiting, 0);
}

static void a_few_are_posted_after_a_while_and_at_the_end(void **state)
{
    Stage *s = *state;
    int64_t begun_us = clock_mono_us();
    add(s, 3);
    run_until_exported(s, 3);
    assert_true(clock_mono_us() - begun_us >= (TRACER_BATCH_MS - 100) * INT64_C(1000));
    add(s, TRACER_BATCH_MAX + 4);
    free_tracer(s);
    assert_int_equal(s->spans, 3 + TRACER_BATCH_MAX + 4);
}

static void a_busy_collector_is_asked_again_when_it_says(void **state)
{
    Stage *s = *state;
    s->answers[0] = 503;
    s->answers[1] = 429;
    s->retry_after = "1";
    int64_t begun_us = clock_mono_us();
    add(s, TRACER_BATCH_MAX);
    run_until_exported(s, TRACER_BATCH_MAX);
    assert_true(clock_mono_us() - begun_us >= 2000 * INT64_C(1000));
    assert_int_equal(s->posts, 3);
    assert_int_equal(tracer_stats(s->tracer).failures, 2);
    assert_int_equal(s->spans, TRACER_BATCH_MAX);
}

static void what_a_collector_refuses_is_dropped(void **state)
{
    Stage *s = *state;
    s->answers[0] = 400;
    add(s, TRACER_BATCH_MAX + 1);
    int64_t end_us = clock_mono_us() + PATIENCE_US;
    while (tracer_stats(s->tracer).refused == 0) {
        uv_run(&s->loop, UV_RUN_ONCE);
        assert_true(clock_mono_us() < end_us);
    }
    assert_int_equal(tracer_stats(s->tracer).refused, TRACER_BATCH_MAX);
    assert_int_equal(tracer_stats(s->tracer).waiting, 1);
}

static void the_ring_is_bounded_while_the_collector_is_silent(void **state)
{
    Stage *s = *state;
    s->silent = true;
    add(s, TRACER_BATCH_MAX);
    int64_t end_us = clock_mono_us() + PATIENCE_US;
    while (s->posts == 0) {
        uv_run(&s->loop, UV_RUN_ONCE);
        assert_true(clock_mono_us() < end_us);
    }
    add(s, TRACER_SPANS_MAX + 1000);
    TracerStats stats = tracer_stats(s->tracer);
    assert_int_equal(stats.full, 1000);
    assert_int_equal(stats.waiting, TRACER_SPANS_MAX + TRACER_BATCH_MAX);
    int64_t begun_us = clock_mono_us();
    free_tracer(s); // waits for nothing longer than 2 s
    assert_true(clock_mono_us() - begun_us < 10 * INT64_C(1000000));
}

static void without_an_endpoint_or_with_always_off_there_is_no_tracer(void **state)
{
    Stage *s = *state;
    TracerOptions off = options_of(s);
    Tracer *tracer = s->tracer;
    Error err = {0};
    off.endpoint = "";
    assert_true(tracer_new(&s->loop, &off, &tracer, &err));
    assert_null(tracer);
    off = options_of(s);
    off.sampler = "always_off";
    assert_true(tracer_new(&s->loop, &off, &tracer, &err));
    assert_null(tracer);
    const TraceContext context = {.sampled = true};
    assert_false(tracer_wants(NULL, &context, true));
    tracer_add(NULL, NULL);
    assert_int_equal(tracer_stats(NULL).waiting, 0);
}

static void a_wrong_option_is_named(void **state)
{
    Stage *s = *state;
    Tracer *tracer = NULL;
    TracerOptions wrong = options_of(s);
    Error err = {0};
    wrong.endpoint = "localhost:4317";
    assert_false(tracer_new(&s->loop, &wrong, &tracer, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_ENDPOINT"));
    wrong = options_of(s);
    wrong.headers = "no pair";
    error_clear(&err);
    assert_false(tracer_new(&s->loop, &wrong, &tracer, &err));
    assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_HEADERS"));
}

static void what_is_kept_is_exported_though_its_trace_is_not_sampled(void **state)
{
    Stage *s = *state;
    const TraceContext out = {.sampled = false}, in = {.sampled = true};
    assert_false(tracer_wants(s->tracer, &out, false));
    assert_true(tracer_wants(s->tracer, &out, true));
    assert_true(tracer_wants(s->tracer, &in, false));
}

int main(void)
{
#define STAGED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        STAGED(a_full_batch_is_posted_at_once),
        STAGED(a_few_are_posted_after_a_while_and_at_the_end),
        STAGED(a_busy_collector_is_asked_again_when_it_says),
        STAGED(what_a_collector_refuses_is_dropped),
        STAGED(the_ring_is_bounded_while_the_collector_is_silent),
        STAGED(without_an_endpoint_or_with_always_off_there_is_no_tracer),
        STAGED(a_wrong_option_is_named),
        STAGED(what_is_kept_is_exported_though_its_trace_is_not_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
