// SPDX-License-Identifier: Apache-2.0
#include "common/service/cleanup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/consume/reader.h"
#include "common/domain/domain_event.h"
#include "common/domain/event_seal.h"
#include "common/names/member.h"

enum {
    FIRST_MS = 60 * 1000, // after the start: a service that comes up has better things to do
    PAUSE_MS = 100,       // between two batches
    BUSY_MS = 1000,       // while another process is at it
    AGAIN_MS = 5000,      // after Postgres was away
    RETRY_MS = 2000,      // after EVENTS was
    TENANTS_MAX = 64,     // that wait; more are all
    TENANT_SIZE = 33,
    BY_SIZE = 129,
    CURSOR_SIZE = 160,
};

// "" is all tenants.
typedef struct CleanupRequest {
    char tenant[TENANT_SIZE];
    char requested_by[BY_SIZE];
} CleanupRequest;

struct Cleanup {
    CleanupOptions options;
    CleanupRule rules[CLEANUP_RULES_MAX];
    uv_timer_t timer;
    uv_timer_t retry; // of the reader
    Reader *reader;   // NULL: until retry
    bool leaving;     // the reader is being freed
    bool complained;
    CleanupRequest waiting[TENANTS_MAX];
    size_t waiting_count;
    int64_t due_us; // when all are due by themselves; of clock_mono_us
    // the pass
    bool running;
    CleanupRequest request;
    size_t rule;
    char cursor[CURSOR_SIZE];
    int64_t pass_started_us;
    uint64_t dropped[CLEANUP_RULES_MAX];
    bool in_flight;
    // the end
    bool stopping;
    int closing;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *passes, *failed, *unknown, *dropped_total[CLEANUP_RULES_MAX];
    int64_t ended_us; // of the last whole pass over all; 0: none yet
    int64_t started_us;
};

static void move_on(Cleanup *c);
static void begin_reading(Cleanup *c);

static void part_closed(Cleanup *c)
{
    if (--c->closing == 0) {
        c->on_stopped(c->stopped_ctx);
    }
}

// ---- the event ----

bool cleanup_event_read(
    const BusMessage *message, Arena *arena, Str *ret_tenant, Str *ret_requested_by, Error *err)
{
    Str tenant, type;
    DomainEvent event;
    if (!domain_subject(message->subject, &tenant, &type)) {
        return error_set(err, ERROR_PERMANENT, "not a subject of an event");
    }
    if (event_is_sealed(message->payload)) { // by a program without keys: who asked is not known
        *ret_tenant = tenant;
        *ret_requested_by = STR_EMPTY;
        return true;
    }
    DomainInput input = domain_input(message, tenant, type, NULL);
    if (!domain_event_read(&input, arena, &event, err)) {
        return false;
    }
    const json_t *by = member_value(event.data, "requested_by");
    Str text = str_of(json_string_value(by), json_string_length(by));
    bool fits = by == NULL || (json_is_string(by) && text.len < BY_SIZE && !str_has_control(text));
    if (fits) {
        *ret_tenant = tenant;
        *ret_requested_by = arena_str(arena, text);
    }
    domain_event_free(&event);
    return fits || error_set(
                       err, ERROR_PERMANENT,
                       "field 'requested_by': must be a text of at most %d bytes without control "
                       "characters",
                       BY_SIZE - 1);
}

static void ask(Cleanup *c, Str tenant, Str requested_by)
{
    Str whose = str_eq(tenant, STR("platform")) ? STR_EMPTY : tenant;
    for (size_t i = 0; i < c->waiting_count; i++) {
        if (str_eq(str_from(c->waiting[i].tenant), whose)) {
            return; // its pass has not started
        }
    }
    if (c->waiting_count == TENANTS_MAX) {
        c->due_us = 0;
        return;
    }
    CleanupRequest *request = &c->waiting[c->waiting_count++];
    (void)str_to_c(whose, request->tenant, sizeof request->tenant);
    (void)str_to_c(requested_by, request->requested_by, sizeof request->requested_by);
}

static void take_event(Cleanup *c, const BusMessage *message)
{
    Arena *arena = arena_new(0);
    Str tenant, requested_by;
    Error err = {0};
    if (cleanup_event_read(message, arena, &tenant, &requested_by, &err)) {
        ask(c, tenant, requested_by);
    } // else ingest's worker has a dead letter of it
    arena_free(arena);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Cleanup *c = ctx;
    for (size_t i = 0; i < count; i++) {
        take_event(c, &messages[i]);
    }
    if (!c->running) {
        move_on(c);
    }
}

static void on_reader_caught_up(void *ctx)
{
    ((Cleanup *)ctx)->complained = false;
}

static void on_timer_retry(uv_timer_t *timer)
{
    begin_reading(timer->data);
}

static void on_reader_left(void *ctx)
{
    Cleanup *c = ctx;
    c->reader = NULL;
    c->leaving = false;
    if (c->closing > 0) {
        part_closed(c);
    } else if (!c->stopping) {
        uv_timer_start(&c->retry, on_timer_retry, RETRY_MS, 0);
    }
}

// The stream is not there, or another one than before: what is asked from now on counts.
static void on_reader_failed(void *ctx, const Error *err)
{
    Cleanup *c = ctx;
    if (!c->complained) {
        LOG(LOG_WARN,
            "clean-up commands cannot be read from EVENTS, trying again; the daily clean-up "
            "continues",
            log_error(err));
    }
    c->complained = true;
    if (!c->leaving && c->closing == 0) {
        c->leaving = true;
        reader_free(c->reader, on_reader_left, c);
    }
}

static void begin_reading(Cleanup *c)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    ReaderOptions reader = {
        .stream = "EVENTS", .filter = "evt.*." CLEANUP_EVENT_TYPE, .only_new = true};
    c->reader = reader_new(c->options.bus, &reader, &handlers, c);
}

// ---- a pass ----

static void on_timer_due(uv_timer_t *timer)
{
    move_on(timer->data);
}

static void wait_ms(Cleanup *c, int64_t ms)
{
    if (!c->stopping) {
        (void)uv_timer_start(&c->timer, on_timer_due, (uint64_t)ms, 0);
    }
}

static void wait_for_the_next(Cleanup *c)
{
    int64_t left_ms = (c->due_us - clock_mono_us()) / 1000;
    wait_ms(c, left_ms > 0 ? left_ms : 0);
}

static bool begin_pass(Cleanup *c)
{
    c->request = (CleanupRequest){.tenant = ""};
    if (clock_mono_us() >= c->due_us) {
        c->due_us = clock_mono_us() + c->options.every_s * INT64_C(1000000);
    } else if (c->waiting_count > 0) {
        c->request = c->waiting[0];
        memmove(c->waiting, c->waiting + 1, --c->waiting_count * sizeof(CleanupRequest));
    } else {
        return false;
    }
    c->running = true;
    c->rule = 0;
    c->cursor[0] = '\0';
    c->pass_started_us = clock_mono_us();
    memset(c->dropped, 0, sizeof c->dropped);
    return true;
}

// "accept_log 12, batches 0": rules of one word together.
static void print_dropped(const Cleanup *c, Buf *out)
{
    for (size_t i = 0; i < c->options.rule_count; i++) {
        uint64_t sum = 0;
        size_t first = CLEANUP_RULES_MAX;
        for (size_t n = 0; n < c->options.rule_count; n++) {
            if (str_eq(str_from(c->rules[n].what), str_from(c->rules[i].what))) {
                sum += c->dropped[n];
                first = n < first ? n : first;
            }
        }
        if (first == i) {
            buf_printf(
                out, "%s%s %llu", i > 0 ? ", " : "", c->rules[i].what, (unsigned long long)sum);
        }
    }
}

static void end_pass(Cleanup *c, const Error *err)
{
    Buf counts;
    buf_init(&counts, 1024);
    print_dropped(c, &counts);
    if (err == NULL) {
        LOG(LOG_INFO, "cleaned up",
            log_text("tenant", c->request.tenant[0] != '\0' ? c->request.tenant : "*"),
            log_text("requested_by", c->request.requested_by),
            log_str("dropped", buf_view(&counts)),
            log_int("ms", (clock_mono_us() - c->pass_started_us) / 1000));
        metric_add(c->passes, 1);
        c->ended_us = c->request.tenant[0] == '\0' ? clock_mono_us() : c->ended_us;
    } else {
        LOG(LOG_ERROR, "clean-up failed, the next scheduled one tries again",
            log_text("what", c->rules[c->rule].what), log_str("dropped", buf_view(&counts)),
            log_error(err));
        metric_add(c->failed, 1);
    }
    buf_done(&counts);
    c->running = false;
    move_on(c);
}

static void take_unknown(Cleanup *c, int64_t unknown)
{
    if (unknown > 0) {
        LOG(LOG_WARN, "notifications dropped past their retention without a known outcome",
            log_text("what", c->rules[c->rule].what),
            log_text("tenant", c->request.tenant[0] != '\0' ? c->request.tenant : "*"),
            log_int("notifications", unknown));
        metric_add(c->unknown, (double)unknown);
    }
}

static void take_batch(Cleanup *c, const PGresult *res)
{
    int64_t dropped = db_get_int(res, 0, 0);
    if (dropped < 0) {
        wait_ms(c, BUSY_MS);
        return;
    }
    c->dropped[c->rule] += (uint64_t)dropped;
    metric_add(c->dropped_total[c->rule], (double)dropped);
    take_unknown(c, PQnfields(res) > 2 ? db_get_int(res, 0, 2) : 0);
    bool more =
        !db_is_null(res, 0, 1) && str_to_c(db_get_text(res, 0, 1), c->cursor, sizeof c->cursor);
    if (more) {
        wait_ms(c, PAUSE_MS);
        return;
    }
    c->cursor[0] = '\0';
    if (++c->rule == c->options.rule_count) {
        end_pass(c, NULL);
    } else {
        move_on(c);
    }
}

static void on_db_dropped(void *ctx, DbTxn *txn, const Error *err)
{
    Cleanup *c = ctx;
    c->in_flight = false;
    if (c->stopping) {
        move_on(c);
    } else if (err == NULL) {
        take_batch(c, db_txn_result(txn, 0));
    } else if (err->kind == ERROR_TRANSIENT) {
        wait_ms(c, AGAIN_MS); // the same batch
    } else {
        end_pass(c, err);
    }
}

// Killed before its commit: nothing is dropped; after it: what is gone is gone, and the next pass
// goes on. Lazily, for what a crash of Postgres brings back is dropped again.
static void drop_batch(Cleanup *c)
{
    const CleanupRule *rule = &c->rules[c->rule];
    DbTxn *txn = db_txn_new(c->options.pool);
    DbParams *p = db_txn_add(txn, rule->statement, NULL);
    db_txn_lazy_commit(txn);
    if (c->request.tenant[0] == '\0') {
        db_null(p);
    } else {
        db_text(p, str_from(c->request.tenant));
    }
    db_text(p, str_from(rule->keep));
    db_text(p, str_from(c->cursor));
    db_i32(p, rule->at_most);
    c->in_flight = true;
    db_txn_submit(txn, on_db_dropped, c);
}

static void close_parts(Cleanup *c);

static void move_on(Cleanup *c)
{
    if (c->in_flight) {
        return;
    }
    if (c->stopping) {
        close_parts(c);
    } else if (!c->running && !begin_pass(c)) {
        wait_for_the_next(c);
    } else if (!db_pool_ready(c->options.pool)) {
        wait_ms(c, AGAIN_MS);
    } else {
        drop_batch(c);
    }
}

// ---- start and stop ----

static double read_age(void *ctx)
{
    const Cleanup *c = ctx;
    int64_t since_us = c->ended_us > 0 ? c->ended_us : c->started_us;
    return (double)(clock_mono_us() - since_us) / 1e6;
}

static void add_metrics(Cleanup *c, Metrics *metrics)
{
    c->passes = metrics_counter(
        metrics, "stentor_cleanup_passes_total", "result=\"done\"", "Clean-ups ended");
    c->failed = metrics_counter(
        metrics, "stentor_cleanup_passes_total", "result=\"failed\"", "Clean-ups ended");
    c->unknown = metrics_counter(
        metrics, "stentor_cleanup_unknown_total", "",
        "Notifications dropped past their retention without a known end");
    metrics_gauge_fn(
        metrics, "stentor_cleanup_age_seconds", "",
        "Since the last clean-up of all tenants, or the start", read_age, c);
    for (size_t i = 0; i < c->options.rule_count; i++) {
        for (size_t n = 0; n < i; n++) {
            if (str_eq(str_from(c->rules[n].what), str_from(c->rules[i].what))) {
                c->dropped_total[i] = c->dropped_total[n];
            }
        }
        if (c->dropped_total[i] == NULL) {
            Buf labels;
            buf_init(&labels, 128);
            metrics_label(&labels, "what", str_from(c->rules[i].what));
            c->dropped_total[i] = metrics_counter(
                metrics, "stentor_cleanup_dropped_total", buf_c(&labels),
                "Rows dropped past their retention");
            buf_done(&labels);
        }
    }
}

Cleanup *cleanup_new(const CleanupOptions *options)
{
    assert(options->rule_count > 0 && options->rule_count <= CLEANUP_RULES_MAX);
    Cleanup *c = xcalloc(1, sizeof *c);
    c->options = *options;
    memcpy(c->rules, options->rules, options->rule_count * sizeof *c->rules);
    c->started_us = clock_mono_us();
    int64_t first_ms = options->every_s * 1000 < FIRST_MS ? options->every_s * 1000 : FIRST_MS;
    c->due_us = c->started_us + first_ms * 1000;
    add_metrics(c, options->metrics);
    (void)uv_timer_init(bus_loop(options->bus), &c->timer);
    (void)uv_timer_init(bus_loop(options->bus), &c->retry);
    c->timer.data = c;
    c->retry.data = c;
    begin_reading(c);
    wait_for_the_next(c);
    return c;
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void close_parts(Cleanup *c)
{
    c->closing = 3;
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
    uv_close((uv_handle_t *)&c->retry, on_timer_closed);
    if (c->reader == NULL) {
        part_closed(c);
    } else if (!c->leaving) {
        c->leaving = true;
        reader_free(c->reader, on_reader_left, c);
    }
}

void cleanup_stop(Cleanup *cleanup, void (*on_stopped)(void *ctx), void *ctx)
{
    cleanup->stopping = true;
    cleanup->on_stopped = on_stopped;
    cleanup->stopped_ctx = ctx;
    (void)uv_timer_stop(&cleanup->timer);
    if (!cleanup->in_flight) {
        close_parts(cleanup);
    }
}

void cleanup_free(Cleanup *cleanup)
{
    free(cleanup);
}
