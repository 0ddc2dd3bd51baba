// SPDX-License-Identifier: Apache-2.0
#include "common/service/heartbeat.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"
#include "common/service/internal.h"

enum { WHY_MAX = 512, VALUES_MAX = 32 };

#define P99 0.99

static bool may_say(const char *service)
{
    size_t count = 0;
    const NatsRights *rights = nats_rights(&count);
    size_t i = 0;
    while (i < count && strcmp(rights[i].service, service) != 0) {
        i++;
    }
    return i < count;
}

// ---- values by name ----

typedef struct Values {
    Buf *out;
    size_t count;
} Values;

static void put_value(Values *values, const char *name, double value)
{
    if (values->count < VALUES_MAX && isfinite(value)) {
        buf_printf(values->out, "%s\"%s\":%.3f", values->count++ > 0 ? "," : "", name, value);
    }
}

static bool ends_in(const char *name, const char *end)
{
    return str_ends(str_from(name), str_from(end));
}

static void on_value(void *ctx, const char *name, const char *labels, double value)
{
    if (labels[0] == '\0' && (ends_in(name, "_lag") || ends_in(name, "_active"))) {
        put_value(ctx, name, value);
    }
}

// Of a histogram with several series the slowest.
typedef struct Slowest {
    Values values;
    char name[128]; // "": none yet
    double ms;
} Slowest;

static void put_slowest(Slowest *slowest)
{
    if (slowest->name[0] != '\0') {
        put_value(&slowest->values, slowest->name, slowest->ms);
    }
}

static void on_quantile(void *ctx, const char *name, const char *labels, double seconds)
{
    (void)labels;
    Slowest *slowest = ctx;
    double ms = seconds * 1000;
    if (!ends_in(name, "_seconds")) {
        return;
    }
    if (strcmp(slowest->name, name) == 0) {
        slowest->ms = ms > slowest->ms ? ms : slowest->ms;
        return;
    }
    put_slowest(slowest);
    (void)str_to_c(str_from(name), slowest->name, sizeof slowest->name);
    slowest->ms = ms;
}

// ---- the text ----

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return seconds > 0 && now >= before ? (double)(now - before) / seconds : 0;
}

static double cpu_seconds(void)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void put_rates(Service *service, Buf *out)
{
    Heartbeat *beat = &service->heartbeat;
    BusStats stats = bus_stats(service->bus);
    uint64_t now_ns = uv_hrtime();
    double cpu_s = cpu_seconds();
    double seconds = beat->at_ns != 0 ? (double)(now_ns - beat->at_ns) / 1e9 : 0;
    buf_printf(
        out, ",\"cpu_percent\":%.1f,\"handled_per_s\":%.1f,\"published_per_s\":%.1f",
        seconds > 0 ? (cpu_s - beat->cpu_s) / seconds * 100 : 0,
        rate(stats.acked, beat->acked, seconds), rate(stats.published, beat->published, seconds));
    beat->at_ns = now_ns;
    beat->cpu_s = cpu_s;
    beat->acked = stats.acked;
    beat->published = stats.published;
}

static void put_state(Service *service, Buf *out)
{
    Buf why;
    buf_init(&why, WHY_MAX);
    bool ready = admin_ready(service, &why);
    buf_printf(out, ",\"ready\":%s,\"why\":", ready ? "true" : "false");
    buf_json(out, ready ? STR_EMPTY : buf_view(&why));
    buf_done(&why);
}

static void write_beat(Service *service, const char *name, Buf *out)
{
    Slowest slowest = {.values = {out, 0}};
    Values values = {out, 0};
    buf_printf(
        out,
        "{\"service\":\"%s\",\"instance\":\"%s\",\"version\":\"%s\",\"started_at_us\":%" PRId64,
        name, service->instance, STENTOR_VERSION, service->started_at_us);
    put_state(service, out);
    buf_printf(out, ",\"rss_bytes\":%.0f", admin_resident_bytes());
    put_rates(service, out);
    buf_cstr(out, ",\"p99_ms\":{");
    metrics_quantiles(
        service->metrics, P99, service->heartbeat.windows, HEARTBEAT_WINDOWS, on_quantile,
        &slowest);
    put_slowest(&slowest);
    buf_cstr(out, "},\"values\":{");
    metrics_visit(service->metrics, on_value, &values);
    buf_cstr(out, "}}");
}

static void beat(Service *service)
{
    static const Str prefix = {"stentor-", 8};
    Str full = str_from(service->spec->name);
    const char *name = service->spec->name + (str_starts(full, prefix) ? prefix.len : 0);
    char subject[SUBJECT_SIZE];
    Buf text;
    buf_init(&text, HEARTBEAT_MAX);
    subject_process(subject, name, service->instance);
    write_beat(service, name, &text);
    if (!text.full) {
        (void)bus_send(service->bus, subject, NULL, buf_view(&text)); // not connected: not heard
    }
    buf_done(&text);
}

void heartbeat_tick(Service *service)
{
    bool runs = service->phase == PHASE_RUNNING || service->phase == PHASE_DRAINING;
    uint64_t now_ms = uv_now(&service->loop);
    if (!runs || now_ms - service->heartbeat.sent_ms < HEARTBEAT_MS ||
        !may_say(service->spec->name)) {
        return;
    }
    service->heartbeat.sent_ms = now_ms;
    beat(service);
}
