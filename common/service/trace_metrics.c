// SPDX-License-Identifier: Apache-2.0
// What became of the process's spans. Zeros without a collector, so that a rule finds its series.
#include "common/service/internal.h"

static TracerStats stats_of(const void *ctx)
{
    return tracer_stats(((const Service *)ctx)->tracer);
}

static double read_exported(void *ctx)
{
    return (double)stats_of(ctx).exported;
}

static double read_full(void *ctx)
{
    return (double)stats_of(ctx).full;
}

static double read_refused(void *ctx)
{
    return (double)stats_of(ctx).refused;
}

static double read_given_up(void *ctx)
{
    return (double)stats_of(ctx).given_up;
}

static double read_failures(void *ctx)
{
    return (double)stats_of(ctx).failures;
}

static double read_waiting(void *ctx)
{
    return (double)stats_of(ctx).waiting;
}

void trace_register_metrics(Service *service)
{
    static const char *const name = "stentor_trace_spans_total";
    static const char *const help =
        "Spans by what became of them: exported, or dropped since the ring was full, the collector "
        "refused them, or did not take them in five tries.";
    Metrics *m = service->metrics;
    metrics_counter_fn(m, name, "result=\"exported\"", help, read_exported, service);
    metrics_counter_fn(m, name, "result=\"full\"", help, read_full, service);
    metrics_counter_fn(m, name, "result=\"refused\"", help, read_refused, service);
    metrics_counter_fn(m, name, "result=\"given_up\"", help, read_given_up, service);
    metrics_counter_fn(
        m, "stentor_trace_posts_failed_total", "",
        "Batches of spans that the collector did not take, each try counted.", read_failures,
        service);
    metrics_gauge_fn(
        m, "stentor_trace_spans_waiting", "", "Spans that wait for the collector.", read_waiting,
        service);
}
