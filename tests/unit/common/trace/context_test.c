// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/trace/context.h"

static const char PARENT[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
static const TraceSampler ALL = {.by_parent = true, .ratio = 1};

static void a_traceparent_is_read_and_written_back(void **state)
{
    (void)state;
    TraceContext context;
    char text[TRACEPARENT_SIZE];
    assert_true(trace_parse(str_from(PARENT), &context));
    assert_true(context.sampled);
    trace_format(&context, text);
    assert_string_equal(text, PARENT);
    context.sampled = false;
    trace_format(&context, text);
    assert_string_equal(text + 52, "-00");
    assert_false(
        trace_parse(STR("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"), &context));
}

static void the_trace_of_a_notification_is_its_ulid(void **state)
{
    (void)state;
    const uint8_t entropy[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 255};
    const uint8_t expected[TRACE_ID_LEN] = {0x01, 0x8c, 0xc2, 0x51, 0xf4, 0x00, 1, 2,
                                            3,    4,    5,    6,    7,    8,    9, 255};
    char id[ID_SIZE];
    uint8_t trace[TRACE_ID_LEN];
    id_derived("ntf_", INT64_C(0x018cc251f400) * 1000, entropy, id);
    assert_true(trace_id_of(str_from(id), trace));
    assert_memory_equal(trace, expected, sizeof expected);
    assert_false(trace_id_of(STR("ntf_01"), trace));
    assert_false(trace_id_of(STR("bat_01ARZ3NDEKTSV4RRFFQ69G5FAV"), trace));
}

static void a_span_has_the_first_eight_bytes_of_its_event(void **state)
{
    (void)state;
    char id[EVENT_ID_SIZE];
    uint8_t bytes[16], span[SPAN_ID_LEN], other[SPAN_ID_LEN];
    size_t len = 0;
    event_id_derive("status", STR("ntf_x"), STR("sent/1"), id);
    assert_true(base64url_decode(str_from(id), bytes, sizeof bytes, &len));
    trace_span_of_event(str_from(id), span);
    assert_memory_equal(span, bytes, SPAN_ID_LEN);
    trace_span_of_event(STR("a caller's own id"), span);
    trace_span_of_event(STR("another caller's own id"), other);
    assert_memory_not_equal(span, other, SPAN_ID_LEN);
}

static void a_message_without_a_trace_is_in_that_of_its_notification(void **state)
{
    (void)state;
    const Str id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    uint8_t trace[TRACE_ID_LEN], accept[SPAN_ID_LEN];
    TraceContext context;
    assert_true(trace_id_of(id, trace));
    trace_accept_span(id, accept);
    assert_true(trace_of_message(&ALL, STR_EMPTY, id, &context));
    assert_memory_equal(context.trace_id, trace, TRACE_ID_LEN);
    assert_memory_equal(context.span_id, accept, SPAN_ID_LEN);
    assert_true(context.sampled);
    assert_true(trace_of_message(&ALL, str_from(PARENT), id, &context));
    assert_int_equal(context.trace_id[0], 0x0a);
    assert_false(trace_of_message(&ALL, STR_EMPTY, STR("no id"), &context));
}

static void ids_of_one_millisecond_are_not_sampled_all_together(void **state)
{
    (void)state;
    enum { IDS = 20000 };
    const TraceSampler tenth = {.ratio = 0.1}, none = {.none = true, .ratio = 1};
    unsigned taken = 0;
    char id[ID_SIZE];
    uint8_t trace[TRACE_ID_LEN];
    for (int i = 0; i < IDS; i++) {
        id_new("ntf_", INT64_C(1700000000000000), id);
        assert_true(trace_id_of(str_from(id), trace));
        taken += trace_sampled(&tenth, trace);
        assert_false(trace_sampled(&none, trace));
        assert_int_equal(trace_sampled(&tenth, trace), trace_sampled(&tenth, trace));
    }
    assert_in_range(taken, IDS / 10 - IDS / 100, IDS / 10 + IDS / 100);
}

static void the_sampler_has_opentelemetrys_names(void **state)
{
    (void)state;
    TraceSampler sampler;
    Error err = {0};
    assert_true(trace_sampler_parse(STR("always_on"), STR(""), &sampler, &err));
    assert_true(sampler.ratio >= 1 && !sampler.by_parent && !sampler.none);
    assert_true(trace_sampler_parse(STR("always_off"), STR(""), &sampler, &err));
    assert_true(sampler.none);
    assert_true(trace_sampler_parse(STR("parentbased_always_off"), STR(""), &sampler, &err));
    assert_true(!sampler.none && sampler.by_parent && sampler.ratio <= 0);
    assert_true(trace_sampler_parse(STR("parentbased_traceidratio"), STR("0.25"), &sampler, &err));
    assert_true(sampler.by_parent && sampler.ratio > 0.2 && sampler.ratio < 0.3);
    const char *const bad[][2] = {
        {"sometimes", "1"},      {"traceidratio", ""},   {"traceidratio", "2"},
        {"traceidratio", "nan"}, {"traceidratio", "1x"}, {"parentbased_", "1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Error why = {0};
        assert_false(trace_sampler_parse(str_from(bad[i][0]), str_from(bad[i][1]), &sampler, &why));
        assert_int_equal(why.kind, ERROR_CONFIG);
        assert_non_null(strstr(why.text, "OTEL_TRACES_SAMPLER"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read_and_written_back),
        cmocka_unit_test(the_trace_of_a_notification_is_its_ulid),
        cmocka_unit_test(a_span_has_the_first_eight_bytes_of_its_event),
        cmocka_unit_test(a_message_without_a_trace_is_in_that_of_its_notification),
        cmocka_unit_test(ids_of_one_millisecond_are_not_sampled_all_together),
        cmocka_unit_test(the_sampler_has_opentelemetrys_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
