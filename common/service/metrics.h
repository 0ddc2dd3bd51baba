// SPDX-License-Identifier: Apache-2.0
// Metrics: counters, gauges and histograms in the Prometheus text format or as OpenMetrics, which
// has exemplars: of each bucket the last trace that fell into it. Registered once at start,
// updated without a lock on the loop thread, printed by /metrics. Not for values that only a
// message knows (a tenant, an id): a series is made at start or never.
#pragma once

#include "common/base/buf.h"

enum { METRICS_MAX = 1024, METRIC_BOUNDS_MAX = 20, METRICS_TEXT_MAX = 1024 * 1024 };

typedef struct Metrics Metrics;
typedef struct Metric Metric;

Metrics *metrics_new(void);
void metrics_free(Metrics *metrics); // and all that was registered: a Metric is never freed alone
// Functions are asked a last time, and no more: what they read is about to be freed.
void metrics_freeze(Metrics *metrics);
// name "stentor_dispatcher_sent_total"; labels "lane=\"high\"" or ""; the same name may be
// registered with several labels. name, labels and help are copied.
Metric *metrics_counter(Metrics *metrics, const char *name, const char *labels, const char *help);
Metric *metrics_gauge(Metrics *metrics, const char *name, const char *labels, const char *help);
// Read at print time.
void metrics_gauge_fn(
    Metrics *metrics, const char *name, const char *labels, const char *help,
    double (*read)(void *ctx), void *ctx);
// The same for what only grows and is counted elsewhere.
void metrics_counter_fn(
    Metrics *metrics, const char *name, const char *labels, const char *help,
    double (*read)(void *ctx), void *ctx);
// Upper bounds ascending, at most METRIC_BOUNDS_MAX; +Inf is added.
Metric *metrics_histogram(
    Metrics *metrics, const char *name, const char *labels, const char *help, const double *bounds,
    size_t count);
void metric_add(Metric *metric, double delta);     // a counter takes nothing negative
void metric_set(Metric *metric, double value);     // gauges
void metric_observe(Metric *metric, double value); // histograms
// The same, and the trace (32 hex digits) in which it was seen, at_us. NULL: in none.
void metric_observe_in(Metric *metric, double value, const char *trace_id, int64_t at_us);
// false when `out` is full.
bool metrics_print(const Metrics *metrics, Buf *out);      // text format 0.0.4
bool metrics_print_open(const Metrics *metrics, Buf *out); // OpenMetrics 1.0
// Appends name="value" with the value escaped, and a comma before it when `out` has something: for
// labels.
bool metrics_label(Buf *out, const char *name, Str value);
// Each gauge and counter with its value, in the order in which they were registered.
typedef void (*MetricVisit)(void *ctx, const char *name, const char *labels, double value);
void metrics_visit(const Metrics *metrics, MetricVisit visit, void *ctx);
// Each histogram with a quantile of what was observed since the last call with the same windows
// (one for each histogram, zeroed at first; those beyond `count` are left out): the upper bound of
// its bucket. One in which nothing was observed is left out.
typedef struct MetricWindow {
    uint64_t counts[METRIC_BOUNDS_MAX + 1];
} MetricWindow;
void metrics_quantiles(
    const Metrics *metrics, double quantile, MetricWindow *windows, size_t count, MetricVisit visit,
    void *ctx);
