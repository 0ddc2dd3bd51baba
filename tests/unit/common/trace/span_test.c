// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/trace/span.h"
#include "otlp/trace.pb-c.h"

typedef struct Fixture {
    Arena *arena;
    Span span;
} Fixture;

static const TraceContext CONTEXT = {.trace_id = {1, 2}, .span_id = {3}, .sampled = true};

static int set_up(void **state)
{
    static Fixture f;
    f = (Fixture){
        .arena = arena_new(0),
        .span = {
            .name = "attempt 1",
            .kind = SPAN_CLIENT,
            .context = CONTEXT,
            .parent = {9},
            .started_at_us = 1000,
            .ended_at_us = 3000,
        }};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    arena_free(((Fixture *)*state)->arena);
    return 0;
}

static Otlp__Span *unpack(Str bytes)
{
    Otlp__Span *span = otlp__span__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    assert_non_null(span);
    return span;
}

static void a_span_says_what_it_was_given(void **state)
{
    Fixture *f = *state;
    const SpanAttribute attributes[] = {
        SPAN_CSTR("server.address", "smtp.example.com"), SPAN_NUMBER("server.port", 25),
        SPAN_CSTR("stentor.reason", "")};
    f->span.attributes = attributes;
    f->span.attribute_count = 3;
    f->span.failed = true;
    f->span.why = STR("550 no\x01 such\xff user");
    Otlp__Span *span = unpack(span_pack(&f->span, f->arena));
    assert_string_equal(span->name, "attempt 1");
    assert_int_equal(span->kind, OTLP__SPAN__SPAN_KIND__SPAN_KIND_CLIENT);
    assert_int_equal(span->start_time_unix_nano, 1000000);
    assert_int_equal(span->end_time_unix_nano, 3000000);
    assert_int_equal(span->parent_span_id.len, SPAN_ID_LEN);
    assert_int_equal(span->n_attributes, 2); // the empty one is left out
    assert_string_equal(span->attributes[0]->value->string_value, "smtp.example.com");
    assert_int_equal(span->attributes[1]->value->int_value, 25);
    assert_int_equal(span->status->code, OTLP__STATUS__STATUS_CODE__STATUS_CODE_ERROR);
    assert_string_equal(span->status->message, "550 no? such? user");
    otlp__span__free_unpacked(span, NULL);
}

static void a_span_that_ended_before_it_began_took_no_time(void **state)
{
    Fixture *f = *state;
    f->span.ended_at_us = 1;
    memset(f->span.parent, 0, sizeof f->span.parent);
    Otlp__Span *span = unpack(span_pack(&f->span, f->arena));
    assert_int_equal(span->end_time_unix_nano, span->start_time_unix_nano);
    assert_int_equal(span->parent_span_id.len, 0);
    otlp__span__free_unpacked(span, NULL);
}

static void links_beyond_128_are_counted(void **state)
{
    Fixture *f = *state;
    TraceContext links[SPAN_LINKS_MAX + 5];
    for (size_t i = 0; i < SPAN_LINKS_MAX + 5; i++) {
        links[i] = CONTEXT;
    }
    f->span.links = links;
    f->span.link_count = SPAN_LINKS_MAX + 5;
    Otlp__Span *span = unpack(span_pack(&f->span, f->arena));
    assert_int_equal(span->n_links, SPAN_LINKS_MAX);
    assert_int_equal(span->dropped_links_count, 5);
    otlp__span__free_unpacked(span, NULL);
}

static void a_request_holds_resource_and_spans(void **state)
{
    Fixture *f = *state;
    const TracePair pairs[] = {{"service.name", "mine"}, {"service.name", "stentor-ingest"}};
    Str spans[300];
    Buf out;
    for (size_t i = 0; i < 300; i++) { // over 16 KiB: lengths of three bytes
        spans[i] = span_pack(&f->span, f->arena);
    }
    buf_init(&out, 1024 * 1024);
    Str resource = trace_resource_pack(pairs, 2, f->arena);
    assert_true(trace_request_pack(&out, resource, STR("1.2"), spans, 300));
    Otlp__TracesRequest *request =
        otlp__traces_request__unpack(NULL, out.len, (const uint8_t *)out.ptr);
    assert_non_null(request);
    const Otlp__ResourceSpans *of = request->resource_spans[0];
    assert_int_equal(of->resource->n_attributes, 1);
    assert_string_equal(of->resource->attributes[0]->value->string_value, "mine");
    assert_string_equal(of->scope_spans[0]->scope->version, "1.2");
    assert_int_equal(of->scope_spans[0]->n_spans, 300);
    assert_string_equal(of->scope_spans[0]->spans[299]->name, "attempt 1");
    otlp__traces_request__free_unpacked(request, NULL);
    buf_done(&out);
}

static void pairs_are_read_with_their_escapes(void **state)
{
    Fixture *f = *state;
    TracePair pairs[3];
    size_t count = 0;
    Error err = {0};
    assert_true(trace_pairs(
        "X", STR("team = a%2Cb , deployment.environment=prod,"), f->arena, pairs, 3, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(pairs[0].key, "team");
    assert_string_equal(pairs[0].value, "a,b");
    assert_string_equal(pairs[1].value, "prod");
    const char *const bad[] = {"team", "=a", "a=%2", "a=%0d%0aHost: b", "a=1,b=2,c=3,d=4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Error why = {0};
        assert_false(trace_pairs("X", str_from(bad[i]), f->arena, pairs, 3, &count, &why));
        assert_int_equal(why.kind, ERROR_CONFIG);
        assert_int_equal(why.text[0], 'X');
    }
}

static void what_a_collector_did_not_take_is_read_from_its_answer(void **state)
{
    (void)state;
    assert_int_equal(trace_rejected(STR("\x0a\x02\x08\x05")), 5);
    assert_int_equal(trace_rejected(STR("")), 0);
    assert_int_equal(trace_rejected(STR("<html>")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_span_says_what_it_was_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_span_that_ended_before_it_began_took_no_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_beyond_128_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_holds_resource_and_spans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pairs_are_read_with_their_escapes, set_up, tear_down),
        cmocka_unit_test(what_a_collector_did_not_take_is_read_from_its_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
