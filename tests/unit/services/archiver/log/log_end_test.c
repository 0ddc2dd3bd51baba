// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/archiver/log/log_end.h"

static const int64_t day_us = INT64_C(86400) * 1000000;

static int64_t at(const char *text)
{
    int64_t us = 0;
    assert_true(clock_parse(str_from(text), &us));
    return us;
}

static LogEndRules default_rules(void)
{
    LogEndRules rules = {.kept = {.content_us = 90 * day_us, .callbacks_us = 548 * day_us}};
    assert_true(retention_plan_parse(STR_EMPTY, &rules.plan, NULL));
    return rules;
}

// Of the stream and class; 0: they have no end.
static int64_t older(const LogEndRules *rules, const char *now, const char *stream, char code)
{
    LogEnd ends[LOG_ENDS_MAX];
    size_t count = log_ends(rules, at(now), ends);
    int64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ends[i].stream, stream) == 0 && ends[i].class_code == code) {
            assert_int_equal(found, 0); // once
            found = ends[i].older_us;
        }
    }
    return found;
}

static void content_and_callbacks_end_after_their_span(void **state)
{
    (void)state;
    LogEndRules rules = default_rules();
    int64_t now_us = at("2026-11-23T12:00:00Z");
    assert_int_equal(
        older(&rules, "2026-11-23T12:00:00Z", "RENDERED_LOW", 0), now_us - 90 * day_us);
    assert_int_equal(older(&rules, "2026-11-23T12:00:00Z", "INBOUND", 0), now_us - 548 * day_us);
}

static void of_what_is_not_kept_any_more_all_ends(void **state)
{
    (void)state;
    LogEndRules rules = default_rules();
    rules.kept = (LogKept){0};
    int64_t now_us = at("2026-11-23T12:00:00Z");
    assert_int_equal(older(&rules, "2026-11-23T12:00:00Z", "RENDERED_LOW", 0), now_us);
    assert_int_equal(older(&rules, "2026-11-23T12:00:00Z", "INBOUND", 0), now_us);
}

static void the_log_ends_with_the_rows_of_its_class_by_the_month(void **state)
{
    (void)state;
    LogEndRules rules = default_rules(); // 84 months, 24, 90 days
    static const char *const streams[] = {"REQUEST_CRITICAL", "REQUEST_LOW", "STATUS", "DEAD"};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        const char *now = "2026-11-23T12:00:00Z";
        assert_int_equal(older(&rules, now, streams[i], 'R'), at("2019-11-01T00:00:00Z"));
        assert_int_equal(older(&rules, now, streams[i], 'S'), at("2024-11-01T00:00:00Z"));
        assert_int_equal(older(&rules, now, streams[i], 'B'), at("2026-08-01T00:00:00Z"));
    }
    assert_int_equal(
        older(&rules, "2026-10-31T23:59:59Z", "STATUS", 'R'), at("2019-10-01T00:00:00Z"));
    assert_int_equal(
        older(&rules, "2026-11-01T00:00:00Z", "STATUS", 'R'), at("2019-11-01T00:00:00Z"));
}

static void a_span_of_its_own_only_shortens(void **state)
{
    (void)state;
    LogEndRules rules = default_rules();
    rules.log = (RetentionSpan){.months = 24};
    const char *now = "2026-11-23T12:00:00Z";
    assert_int_equal(older(&rules, now, "STATUS", 'R'), at("2024-11-01T00:00:00Z"));
    assert_int_equal(older(&rules, now, "STATUS", 'S'), at("2024-11-01T00:00:00Z"));
    assert_int_equal(older(&rules, now, "STATUS", 'B'), at("2026-08-01T00:00:00Z"));
}

static void what_is_true_now_has_no_end(void **state)
{
    (void)state;
    LogEndRules rules = default_rules();
    static const char *const streams[] = {"PEOPLE", "CONFIG", "AUDIT", "EVENTS", "DEFERRED"};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        static const char codes[] = {0, 'R', 'S', 'B'};
        for (size_t k = 0; k < sizeof codes; k++) {
            assert_int_equal(older(&rules, "2099-01-01T00:00:00Z", streams[i], codes[k]), 0);
        }
    }
}

static void the_longest_span_ends_nothing_before_1970(void **state)
{
    (void)state;
    LogEndRules rules = default_rules();
    rules.plan.of[RETENTION_RECORD].kept = (RetentionSpan){.months = 1200};
    assert_true(older(&rules, "2026-11-23T12:00:00Z", "STATUS", 'R') <= 0);
}

static void a_span_is_read_and_a_short_one_is_refused(void **state)
{
    (void)state;
    RetentionSpan span;
    Error err = {0};
    assert_true(log_span_parse(STR(""), &span, &err));
    assert_int_equal(span.months + span.days, 0);
    assert_true(log_span_parse(STR("2y"), &span, &err));
    assert_int_equal(span.months, 24);
    assert_true(log_span_parse(STR("31d"), &span, &err));
    assert_int_equal(span.days, 31);
    static const char *const wrong[] = {"30d", "1m", "12h", "0s", "d", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(log_span_parse(str_from(wrong[i]), &span, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, "STENTOR_LOG_KEPT"));
        assert_non_null(strstr(err.text, wrong[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_and_callbacks_end_after_their_span),
        cmocka_unit_test(of_what_is_not_kept_any_more_all_ends),
        cmocka_unit_test(the_log_ends_with_the_rows_of_its_class_by_the_month),
        cmocka_unit_test(a_span_of_its_own_only_shortens),
        cmocka_unit_test(what_is_true_now_has_no_end),
        cmocka_unit_test(the_longest_span_ends_nothing_before_1970),
        cmocka_unit_test(a_span_is_read_and_a_short_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
