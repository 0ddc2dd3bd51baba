// SPDX-License-Identifier: Apache-2.0
#include "common/service/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { TRACE_ID_TEXT = 33 };

typedef enum MetricKind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM } MetricKind;

typedef struct Exemplar {
    char trace_id[TRACE_ID_TEXT]; // "": none yet
    double value;
    int64_t at_us;
} Exemplar;

struct Metric {
    MetricKind kind;
    const char *name;
    const char *labels;
    const char *help;
    double value; // of a histogram: the sum
    double (*read)(void *ctx);
    void *ctx;
    size_t bound_count;
    double bounds[METRIC_BOUNDS_MAX];
    uint64_t counts[METRIC_BOUNDS_MAX + 1]; // of each bucket alone; the last is +Inf
    Exemplar *exemplars;                    // of each bucket; NULL: nothing was seen in a trace yet
    Arena *arena;
    Metric *sibling; // the next of the same name, which must be printed together
    bool is_first;   // of its name
};

struct Metrics {
    Arena *arena;
    Metric *metrics[METRICS_MAX];
    size_t count;
};

// ---- registering ----

static bool is_metric_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        bool letter =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || *c == ':';
        if (!letter && !(*c >= '0' && *c <= '9' && c > name)) {
            return false;
        }
    }
    return name[0] != '\0';
}

Metrics *metrics_new(void)
{
    Metrics *metrics = xcalloc(1, sizeof *metrics);
    metrics->arena = arena_new(0);
    return metrics;
}

void metrics_free(Metrics *metrics)
{
    if (metrics != NULL) {
        arena_free(metrics->arena);
        free(metrics);
    }
}

// Puts it behind the last of its name.
static void join_family(Metrics *metrics, Metric *metric)
{
    metric->is_first = true;
    for (size_t i = 0; i < metrics->count; i++) {
        Metric *other = metrics->metrics[i];
        if (strcmp(other->name, metric->name) != 0) {
            continue;
        }
        assert(other->kind == metric->kind);
        assert(strcmp(other->labels, metric->labels) != 0);
        metric->is_first = false;
        if (other->sibling == NULL) {
            other->sibling = metric;
            return;
        }
    }
}

static Metric *add(
    Metrics *metrics, MetricKind kind, const char *name, const char *labels, const char *help)
{
    bool is_name = is_metric_name(name);
    assert(is_name);
    (void)is_name;
    assert(metrics->count < METRICS_MAX);
    Metric *metric = arena_zalloc(metrics->arena, sizeof *metric);
    // OpenMetrics knows a counter by it.
    assert(kind != METRIC_COUNTER || str_ends(str_from(name), STR("_total")));
    metric->kind = kind;
    metric->arena = metrics->arena;
    metric->name = arena_cstr(metrics->arena, str_from(name));
    metric->labels = arena_cstr(metrics->arena, str_from(labels));
    metric->help = arena_cstr(metrics->arena, str_from(help));
    join_family(metrics, metric);
    metrics->metrics[metrics->count++] = metric;
    return metric;
}

Metric *metrics_counter(Metrics *metrics, const char *name, const char *labels, const char *help)
{
    return add(metrics, METRIC_COUNTER, name, labels, help);
}

Metric *metrics_gauge(Metrics *metrics, const char *name, const char *labels, const char *help)
{
    return add(metrics, METRIC_GAUGE, name, labels, help);
}

void metrics_gauge_fn(
    Metrics *metrics, const char *name, const char *labels, const char *help,
    double (*read)(void *ctx), void *ctx)
{
    Metric *metric = add(metrics, METRIC_GAUGE, name, labels, help);
    metric->read = read;
    metric->ctx = ctx;
}

void metrics_counter_fn(
    Metrics *metrics, const char *name, const char *labels, const char *help,
    double (*read)(void *ctx), void *ctx)
{
    Metric *metric = add(metrics, METRIC_COUNTER, name, labels, help);
    metric->read = read;
    metric->ctx = ctx;
}

Metric *metrics_histogram(
    Metrics *metrics, const char *name, const char *labels, const char *help, const double *bounds,
    size_t count)
{
    assert(count <= METRIC_BOUNDS_MAX);
    Metric *metric = add(metrics, METRIC_HISTOGRAM, name, labels, help);
    metric->bound_count = count;
    for (size_t i = 0; i < count; i++) {
        assert(i == 0 || bounds[i] > bounds[i - 1]);
        metric->bounds[i] = bounds[i];
    }
    return metric;
}

// ---- updating ----

void metric_add(Metric *metric, double delta)
{
    assert(metric->kind == METRIC_GAUGE || (metric->kind == METRIC_COUNTER && delta >= 0));
    metric->value += delta;
}

void metric_set(Metric *metric, double value)
{
    assert(metric->kind == METRIC_GAUGE);
    metric->value = value;
}

static size_t observe(Metric *metric, double value)
{
    assert(metric->kind == METRIC_HISTOGRAM);
    size_t bucket = 0;
    while (bucket < metric->bound_count && value > metric->bounds[bucket]) {
        bucket++;
    }
    metric->counts[bucket]++;
    metric->value += value;
    return bucket;
}

void metric_observe(Metric *metric, double value)
{
    (void)observe(metric, value);
}

void metric_observe_in(Metric *metric, double value, const char *trace_id, int64_t at_us)
{
    size_t bucket = observe(metric, value);
    if (trace_id == NULL) {
        return;
    }
    if (metric->exemplars == NULL) {
        metric->exemplars = arena_array(metric->arena, metric->bound_count + 1, sizeof(Exemplar));
    }
    Exemplar *exemplar = &metric->exemplars[bucket];
    exemplar->value = value;
    exemplar->at_us = at_us;
    (void)str_to_c(str_from(trace_id), exemplar->trace_id, sizeof exemplar->trace_id);
}

// ---- printing ----

static void print_escaped(Buf *out, Str text, bool quotes_too)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\n') {
            buf_cstr(out, "\\n");
            continue;
        }
        if (c == '\\' || (quotes_too && c == '"')) {
            buf_char(out, '\\');
        }
        buf_char(out, c);
    }
}

bool metrics_label(Buf *out, const char *name, Str value)
{
    buf_printf(out, "%s%s=\"", out->len > 0 ? "," : "", name);
    print_escaped(out, value, true);
    return buf_char(out, '"');
}

static void print_number(Buf *out, double value)
{
    if (isnan(value)) {
        buf_cstr(out, "NaN");
    } else if (isinf(value)) {
        buf_cstr(out, value > 0 ? "+Inf" : "-Inf");
    } else {
        buf_printf(out, "%.15g", value);
    }
}

// OpenMetrics has one spelling of a bound: "1.0", never "1".
static void print_bound(Buf *out, double value, bool open)
{
    print_number(out, value);
    if (open && value > -1e6 && value < 1e6 && value == (double)(int64_t)value) {
        buf_cstr(out, ".0");
    }
}

static void print_sample(Buf *out, const Metric *metric, const char *suffix, double value)
{
    bool has_labels = metric->labels[0] != '\0';
    buf_printf(
        out, "%s%s%s%s%s ", metric->name, suffix, has_labels ? "{" : "", metric->labels,
        has_labels ? "}" : "");
    print_number(out, value);
    buf_char(out, '\n');
}

static void print_exemplar(Buf *out, const Metric *metric, size_t bucket)
{
    const Exemplar *exemplar = metric->exemplars != NULL ? &metric->exemplars[bucket] : NULL;
    if (exemplar == NULL || exemplar->trace_id[0] == '\0') {
        return;
    }
    buf_printf(out, " # {trace_id=\"%s\"} ", exemplar->trace_id);
    print_number(out, exemplar->value);
    buf_printf(
        out, " %" PRId64 ".%03d", exemplar->at_us / 1000000, (int)(exemplar->at_us / 1000 % 1000));
}

static void print_histogram(Buf *out, const Metric *metric, bool open)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= metric->bound_count; i++) {
        total += metric->counts[i];
        buf_printf(
            out, "%s_bucket{%s%sle=\"", metric->name, metric->labels,
            metric->labels[0] != '\0' ? "," : "");
        print_bound(out, i < metric->bound_count ? metric->bounds[i] : INFINITY, open);
        buf_printf(out, "\"} %" PRIu64, total);
        if (open) {
            print_exemplar(out, metric, i);
        }
        buf_char(out, '\n');
    }
    print_sample(out, metric, "_sum", metric->value);
    print_sample(out, metric, "_count", (double)total);
}

// A counter's samples are called as in the text format, its family without "_total".
static Str family_name(const Metric *first, bool open)
{
    Str name = str_from(first->name), total = STR("_total");
    bool shorter = open && first->kind == METRIC_COUNTER && str_ends(name, total);
    return shorter ? str_slice(name, 0, name.len - total.len) : name;
}

static void print_family(Buf *out, const Metric *first, bool open)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    Str name = family_name(first, open);
    buf_printf(out, "# HELP " STR_FMT " ", STR_ARG(name));
    print_escaped(out, str_from(first->help), open);
    buf_printf(out, "\n# TYPE " STR_FMT " %s\n", STR_ARG(name), kinds[first->kind]);
    for (const Metric *metric = first; metric != NULL; metric = metric->sibling) {
        if (metric->kind == METRIC_HISTOGRAM) {
            print_histogram(out, metric, open);
        } else {
            print_sample(
                out, metric, "", metric->read != NULL ? metric->read(metric->ctx) : metric->value);
        }
    }
}

static void print_all(const Metrics *metrics, Buf *out, bool open)
{
    for (size_t i = 0; i < metrics->count; i++) {
        if (metrics->metrics[i]->is_first) {
            print_family(out, metrics->metrics[i], open);
        }
    }
}

bool metrics_print(const Metrics *metrics, Buf *out)
{
    print_all(metrics, out, false);
    return !out->full;
}

bool metrics_print_open(const Metrics *metrics, Buf *out)
{
    print_all(metrics, out, true);
    buf_cstr(out, "# EOF\n");
    return !out->full;
}

void metrics_freeze(Metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        Metric *m = metrics->metrics[i];
        if (m->read != NULL) {
            m->value = m->read(m->ctx);
            m->read = NULL;
        }
    }
}

// ---- for programs ----

void metrics_visit(const Metrics *metrics, MetricVisit visit, void *ctx)
{
    for (size_t i = 0; i < metrics->count; i++) {
        const Metric *m = metrics->metrics[i];
        if (m->kind != METRIC_HISTOGRAM) {
            visit(ctx, m->name, m->labels, m->read != NULL ? m->read(m->ctx) : m->value);
        }
    }
}

// Below 0: nothing was observed. What is beyond the last bound counts as the last bound.
static double quantile_since(const Metric *m, double quantile, MetricWindow *window)
{
    uint64_t total = 0, below = 0;
    uint64_t fresh[METRIC_BOUNDS_MAX + 1] = {0};
    for (size_t b = 0; b <= m->bound_count; b++) {
        fresh[b] = m->counts[b] - window->counts[b];
        window->counts[b] = m->counts[b];
        total += fresh[b];
    }
    for (size_t b = 0; total > 0 && b < m->bound_count; b++) {
        below += fresh[b];
        if ((double)below >= quantile * (double)total) {
            return m->bounds[b];
        }
    }
    return total > 0 ? m->bounds[m->bound_count - 1] : -1;
}

void metrics_quantiles(
    const Metrics *metrics, double quantile, MetricWindow *windows, size_t count, MetricVisit visit,
    void *ctx)
{
    size_t at = 0;
    for (size_t i = 0; i < metrics->count && at < count; i++) {
        const Metric *m = metrics->metrics[i];
        if (m->kind != METRIC_HISTOGRAM) {
            continue;
        }
        double value = quantile_since(m, quantile, &windows[at++]);
        if (value >= 0) {
            visit(ctx, m->name, m->labels, value);
        }
    }
}
