// SPDX-License-Identifier: Apache-2.0
// What `promtool check metrics` takes was checked once by hand; these texts pass it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/service/metrics.h"

static int set_up(void **state)
{
    *state = metrics_new();
    return 0;
}

static int tear_down(void **state)
{
    metrics_free(*state);
    return 0;
}

static void expect_text(const Metrics *metrics, const char *expected)
{
    Buf out;
    buf_init(&out, METRICS_TEXT_MAX);
    assert_true(metrics_print(metrics, &out));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void nothing_registered_prints_nothing(void **state)
{
    expect_text(*state, "");
}

static void a_name_has_one_head_and_its_series_together(void **state)
{
    Metrics *m = *state;
    Metric *high = metrics_counter(m, "stentor_dispatcher_sent_total", "lane=\"high\"", "Sent.");
    Metric *depth = metrics_gauge(m, "stentor_depth", "", "Depth\nof \\ it.");
    Metric *low = metrics_counter(m, "stentor_dispatcher_sent_total", "lane=\"low\"", "Sent.");
    Metric *bulk = metrics_counter(m, "stentor_dispatcher_sent_total", "lane=\"bulk\"", "Sent.");
    metric_add(high, 1);
    metric_add(high, 2);
    metric_add(low, 5000000000);
    metric_add(bulk, 0.25);
    metric_set(depth, -3);
    metric_add(depth, 1);
    expect_text(
        m, "# HELP stentor_dispatcher_sent_total Sent.\n"
           "# TYPE stentor_dispatcher_sent_total counter\n"
           "stentor_dispatcher_sent_total{lane=\"high\"} 3\n"
           "stentor_dispatcher_sent_total{lane=\"low\"} 5000000000\n"
           "stentor_dispatcher_sent_total{lane=\"bulk\"} 0.25\n"
           "# HELP stentor_depth Depth\\nof \\\\ it.\n"
           "# TYPE stentor_depth gauge\n"
           "stentor_depth -2\n");
}

static void a_histogram_is_cumulative(void **state)
{
    Metrics *m = *state;
    const double bounds[] = {0.1, 1, 10};
    Metric *plain = metrics_histogram(m, "stentor_wait_seconds", "", "Wait.", bounds, 3);
    Metric *other =
        metrics_histogram(m, "stentor_wait_seconds", "lane=\"low\"", "Wait.", bounds, 1);
    metric_observe(plain, 0.1); // a bound belongs to its bucket
    metric_observe(plain, 0.5);
    metric_observe(plain, 0.75);
    metric_observe(plain, 100);
    metric_observe(other, 0);
    expect_text(
        m, "# HELP stentor_wait_seconds Wait.\n"
           "# TYPE stentor_wait_seconds histogram\n"
           "stentor_wait_seconds_bucket{le=\"0.1\"} 1\n"
           "stentor_wait_seconds_bucket{le=\"1\"} 3\n"
           "stentor_wait_seconds_bucket{le=\"10\"} 3\n"
           "stentor_wait_seconds_bucket{le=\"+Inf\"} 4\n"
           "stentor_wait_seconds_sum 101.35\n"
           "stentor_wait_seconds_count 4\n"
           "stentor_wait_seconds_bucket{lane=\"low\",le=\"0.1\"} 1\n"
           "stentor_wait_seconds_bucket{lane=\"low\",le=\"+Inf\"} 1\n"
           "stentor_wait_seconds_sum{lane=\"low\"} 0\n"
           "stentor_wait_seconds_count{lane=\"low\"} 1\n");
}

static void openmetrics_has_the_last_trace_of_each_bucket(void **state)
{
    Metrics *m = *state;
    const double bounds[] = {0.5, 1};
    Metric *seen = metrics_histogram(m, "stentor_wait_seconds", "lane=\"low\"", "Wait.", bounds, 2);
    metric_add(metrics_counter(m, "stentor_sent_total", "", "Sent \"all\"."), 3);
    metric_observe_in(seen, 0.25, "0af7651916cd43dd8448eb211c80319c", INT64_C(1700000000123456));
    metric_observe_in(seen, 0.5, "1af7651916cd43dd8448eb211c80319c", INT64_C(1700000001000000));
    metric_observe_in(seen, 0.75, NULL, 5);
    metric_observe_in(seen, 7, "2af7651916cd43dd8448eb211c80319c", INT64_C(1700000002000000));
    Buf out;
    buf_init(&out, METRICS_TEXT_MAX);
    assert_true(metrics_print_open(m, &out));
    assert_string_equal(
        buf_c(&out), "# HELP stentor_wait_seconds Wait.\n"
                     "# TYPE stentor_wait_seconds histogram\n"
                     "stentor_wait_seconds_bucket{lane=\"low\",le=\"0.5\"} 2"
                     " # {trace_id=\"1af7651916cd43dd8448eb211c80319c\"} 0.5 1700000001.000\n"
                     "stentor_wait_seconds_bucket{lane=\"low\",le=\"1.0\"} 3\n"
                     "stentor_wait_seconds_bucket{lane=\"low\",le=\"+Inf\"} 4"
                     " # {trace_id=\"2af7651916cd43dd8448eb211c80319c\"} 7 1700000002.000\n"
                     "stentor_wait_seconds_sum{lane=\"low\"} 8.5\n"
                     "stentor_wait_seconds_count{lane=\"low\"} 4\n"
                     "# HELP stentor_sent Sent \\\"all\\\".\n"
                     "# TYPE stentor_sent counter\n"
                     "stentor_sent_total 3\n"
                     "# EOF\n");
    buf_clear(&out);
    assert_true(metrics_print(m, &out)); // the text format has no place for them
    assert_false(str_contains(buf_view(&out), STR("trace_id")));
    assert_true(str_contains(buf_view(&out), STR("# TYPE stentor_sent_total counter")));
    buf_done(&out);
}

static double read_number(void *ctx)
{
    return *(double *)ctx;
}

static void functions_are_read_at_print_time(void **state)
{
    Metrics *m = *state;
    double gauge = 1;
    double counter = 2;
    metrics_gauge_fn(m, "stentor_g", "", "G.", read_number, &gauge);
    metrics_counter_fn(m, "stentor_c_total", "", "C.", read_number, &counter);
    gauge = NAN;
    counter = INFINITY;
    expect_text(
        m, "# HELP stentor_g G.\n# TYPE stentor_g gauge\nstentor_g NaN\n"
           "# HELP stentor_c_total C.\n# TYPE stentor_c_total counter\n"
           "stentor_c_total +Inf\n");
}

static void a_frozen_function_is_not_asked_again(void **state)
{
    Metrics *m = *state;
    double gauge = 1;
    metrics_gauge_fn(m, "stentor_g", "", "G.", read_number, &gauge);
    metrics_freeze(m);
    gauge = 2;
    expect_text(m, "# HELP stentor_g G.\n# TYPE stentor_g gauge\nstentor_g 1\n");
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 256);
    metrics_label(&out, "a", STR("x\"y\\z\n"));
    metrics_label(&out, "b", STR(""));
    assert_string_equal(buf_c(&out), "a=\"x\\\"y\\\\z\\n\",b=\"\"");
    buf_done(&out);
}

static void a_full_buffer_is_reported(void **state)
{
    Metrics *m = *state;
    metrics_gauge(m, "stentor_g", "", "G.");
    Buf out;
    buf_init(&out, 10);
    assert_false(metrics_print(m, &out));
    buf_done(&out);
}

static void note_value(void *ctx, const char *name, const char *labels, double value)
{
    (void)buf_printf(ctx, "%s{%s} %g;", name, labels, value);
}

static void programs_are_given_values_and_quantiles_of_what_is_new(void **state)
{
    Metrics *m = *state;
    static const double bounds[] = {0.01, 0.1, 1};
    Buf seen;
    buf_init(&seen, 512);
    metric_set(metrics_gauge(m, "stentor_lag", "", "L."), 7);
    metric_add(metrics_counter(m, "stentor_c_total", "a=\"b\"", "C."), 2);
    Metric *fast = metrics_histogram(m, "stentor_fast_seconds", "", "F.", bounds, 3);
    Metric *slow = metrics_histogram(m, "stentor_slow_seconds", "", "S.", bounds, 3);
    metrics_visit(m, note_value, &seen);
    assert_string_equal(buf_c(&seen), "stentor_lag{} 7;stentor_c_total{a=\"b\"} 2;");
    MetricWindow windows[2] = {{{0}}};
    for (int i = 0; i < 100; i++) {
        metric_observe(fast, i < 98 ? 0.001 : 0.05);
    }
    metric_observe(slow, 50); // beyond the last bound
    buf_clear(&seen);
    metrics_quantiles(m, 0.99, windows, 2, note_value, &seen);
    assert_string_equal(buf_c(&seen), "stentor_fast_seconds{} 0.1;stentor_slow_seconds{} 1;");
    metric_observe(fast, 0.001);
    buf_clear(&seen);
    metrics_quantiles(m, 0.99, windows, 2, note_value, &seen);
    assert_string_equal(buf_c(&seen), "stentor_fast_seconds{} 0.01;"); // slow: nothing is new
    metric_observe(slow, 0.001);
    buf_clear(&seen);
    metrics_quantiles(m, 0.99, windows, 1, note_value, &seen);
    assert_string_equal(buf_c(&seen), ""); // one window
    buf_done(&seen);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_registered_prints_nothing),
        TEST(a_name_has_one_head_and_its_series_together),
        TEST(a_histogram_is_cumulative),
        TEST(functions_are_read_at_print_time),
        TEST(a_frozen_function_is_not_asked_again),
        TEST(label_values_are_escaped),
        TEST(a_full_buffer_is_reported),
        TEST(programs_are_given_values_and_quantiles_of_what_is_new),
        TEST(openmetrics_has_the_last_trace_of_each_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
