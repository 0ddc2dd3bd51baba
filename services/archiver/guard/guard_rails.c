// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/guard/guard_rails.h"

#include <stdlib.h>

#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"

enum { LOOKS_MAX = 16 }; // entries of CONFIG that are read or stored at once

#define DAY_US INT64_C(86400000000)

struct GuardRails {
    GuardRailsOptions options;
    GuardRates *rates;
    Map *levels; // tenant -> GuardLevel that was logged
    uv_timer_t timer;
    bool loaded;
    size_t under_way;
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *paused;
    Metric *level[GUARD_PAUSE + 1];
};

// A tenant over a limit, on its way to CONFIG; owns its arena.
typedef struct Look {
    GuardRails *guard;
    Arena *arena;
    Str tenant;
    char *subject;
    GuardVerdict verdict;
} Look;

static const DbStatement OUTCOMES = {
    "guard_outcomes",
    "SELECT tenant, step, sent, bounced, complained FROM stentor.recent_outcomes($1::timestamptz)",
};

// ---- counting ----

// "ntf.status.<tenant>.email.<status>"
static bool read_subject(Str subject, Str *ret_tenant, GuardOutcome *ret)
{
    static const struct {
        const char *status;
        GuardOutcome what;
    } rows[] = {{"sent", GUARD_SENT}, {"bounced", GUARD_BOUNCED}, {"complained", GUARD_COMPLAINED}};
    Str prefix, channel;
    Str rest = str_slice(subject, sizeof "ntf.status." - 1, subject.len);
    prefix = str_slice(subject, 0, sizeof "ntf.status." - 1);
    if (!str_eq(prefix, STR("ntf.status.")) || !str_split(&rest, '.', ret_tenant) ||
        !str_split(&rest, '.', &channel) || !str_eq(channel, STR("email"))) {
        return false;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (str_eq(rest, str_from(rows[i].status))) {
            *ret = rows[i].what;
            return true;
        }
    }
    return false;
}

void guard_rails_note(GuardRails *guard, const BusMessage *message)
{
    Str tenant;
    GuardOutcome what;
    if (guard->loaded && read_subject(message->subject, &tenant, &what)) {
        guard_rates_note(guard->rates, tenant, what, 1, message->stored_at_us);
    }
}

void guard_rails_forget(GuardRails *guard)
{
    guard->loaded = false;
}

static void end_one(GuardRails *guard)
{
    if (--guard->under_way == 0 && guard->stopping) {
        guard->on_stopped(guard->stopped_ctx);
    }
}

static void on_outcomes(void *ctx, DbTxn *txn, const Error *err)
{
    GuardRails *guard = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "bounces and complaints of the last day were not counted; trying again",
            log_error(err));
        end_one(guard);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    guard_rates_clear(guard->rates);
    for (int row = 0; row < db_rows(rows); row++) {
        Str tenant = db_get_text(rows, row, 0);
        int64_t at_us = db_get_time(rows, row, 1);
        for (int what = GUARD_SENT; what < GUARD_OUTCOMES; what++) {
            guard_rates_note(
                guard->rates, tenant, (GuardOutcome)what, (uint64_t)db_get_int(rows, row, 2 + what),
                at_us);
        }
    }
    guard->loaded = true;
    end_one(guard);
}

static void load(GuardRails *guard, int64_t now_us)
{
    if (guard->under_way > 0 || !db_pool_ready(guard->options.pool)) {
        return;
    }
    DbTxn *txn = db_txn_new(guard->options.pool);
    db_time(db_txn_add(txn, &OUTCOMES, NULL), now_us - DAY_US);
    guard->under_way++;
    db_txn_submit(txn, on_outcomes, guard);
}

// ---- pausing ----

static void end_look(Look *look)
{
    GuardRails *guard = look->guard;
    arena_free(look->arena);
    end_one(guard);
}

static const char *word_of(GuardOutcome of)
{
    return of == GUARD_BOUNCED ? "hard bounces" : "complaints";
}

static void on_pause_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    Look *look = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "marketing was not paused; trying again", log_str("tenant", look->tenant),
            log_error(err));
    } else if (!duplicate) {
        metric_add(look->guard->paused, 1);
        LOG(LOG_ERROR, "marketing e-mails of a tenant are paused: too many bounces or complaints",
            log_str("tenant", look->tenant), log_text("of", word_of(look->verdict.of)),
            log_int("bad", (int64_t)look->verdict.bad),
            log_int("sent", (int64_t)look->verdict.sent),
            log_int("hours", look->verdict.span_us / INT64_C(3600000000)),
            log_text("hint", "find the list that they come from, then stentor guard resume"));
    }
    end_look(look);
}

static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE; // another wrote at this moment; the next look reads what
}

static void pause_marketing(Look *look, uint64_t replaces, int64_t now_us)
{
    const GuardVerdict *verdict = &look->verdict;
    Error err = {0};
    SuppressionSpec spec = {
        .tenant = look->tenant,
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .hash = SUPPRESSION_EVERY_ADDRESS,
        .reason = SUPPRESSION_RATE_LIMIT,
        .at_us = now_us,
        .by = STR("guard"),
        .note = str_from(arena_printf(
            look->arena, "%llu %s of %llu e-mails in %lld h", (unsigned long long)verdict->bad,
            word_of(verdict->of), (unsigned long long)verdict->sent,
            (long long)(verdict->span_us / INT64_C(3600000000)))),
        .address = STR_EMPTY,
        .notification_id = STR_EMPTY,
    };
    ConfigStore store = {
        .replaces = replaces, .decide = leave, .done = on_pause_stored, .ctx = look};
    if (suppression_event(suppression_make(&spec, look->arena), look->arena, &store.out, &err)) {
        config_store(look->guard->options.bus, &store, look->arena);
    } else {
        on_pause_stored(look, &err, 0, false);
    }
}

// In force: nothing to do. Released: only what came after it counts.
static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Look *look = ctx;
    GuardRails *guard = look->guard;
    int64_t now_us = clock_now_us();
    const Stentor__V1__Suppression *entry =
        err != NULL || payload.len == 0
            ? NULL
            : (const Stentor__V1__Suppression *)event_unpack(
                  &stentor__v1__suppression__descriptor, payload, look->arena, NULL);
    bool in_force = entry != NULL && entry->released_at_us == 0 &&
                    (entry->expires_at_us == 0 || entry->expires_at_us > now_us);
    int64_t since_us = entry != NULL ? entry->released_at_us : 0;
    look->verdict =
        guard_rates_judge(guard->rates, look->tenant, &guard->options.limits, since_us, now_us);
    if (err != NULL || in_force || look->verdict.level != GUARD_PAUSE || guard->stopping) {
        end_look(look);
    } else {
        pause_marketing(look, sequence, now_us);
    }
}

static void look_at(GuardRails *guard, Str tenant)
{
    char key[SUPPRESSION_KEY_SIZE];
    Arena *arena = arena_new(0);
    Look *look = arena_zalloc(arena, sizeof *look);
    *look = (Look){
        .guard = guard,
        .arena = arena,
        .tenant = arena_str(arena, tenant),
        .subject = arena_alloc(arena, SUBJECT_SIZE),
    };
    suppression_key(key, CHANNEL_EMAIL, CATEGORY_MARKETING, SUPPRESSION_EVERY_ADDRESS);
    subject_config(look->subject, "suppression", look->tenant, str_from(key));
    guard->under_way++;
    config_read(guard->options.bus, look->subject, arena, on_entry_read, look);
}

// ---- the clock ----

static void log_level(GuardRails *guard, Str tenant, const GuardVerdict *verdict)
{
    GuardLevel *was = map_get(guard->levels, tenant);
    if (was == NULL) {
        was = xcalloc(1, sizeof *was);
        map_put(guard->levels, tenant, was);
    }
    if (verdict->level == GUARD_WARN && *was == GUARD_FINE) {
        LOG(LOG_WARN, "many of a tenant's e-mails bounce or are complained about",
            log_str("tenant", tenant), log_text("of", word_of(verdict->of)),
            log_int("bad", (int64_t)verdict->bad), log_int("sent", (int64_t)verdict->sent));
    }
    *was = verdict->level;
}

static void judge_all(GuardRails *guard, int64_t now_us)
{
    size_t cursor = 0;
    double counts[GUARD_PAUSE + 1] = {0};
    for (Str tenant; guard_rates_next(guard->rates, &cursor, &tenant);) {
        GuardVerdict verdict =
            guard_rates_judge(guard->rates, tenant, &guard->options.limits, 0, now_us);
        counts[verdict.level]++;
        log_level(guard, tenant, &verdict);
        if (verdict.level == GUARD_PAUSE && guard->under_way < LOOKS_MAX &&
            bus_connected(guard->options.bus)) {
            look_at(guard, tenant);
        }
    }
    metric_set(guard->level[GUARD_WARN], counts[GUARD_WARN]);
    metric_set(guard->level[GUARD_PAUSE], counts[GUARD_PAUSE]);
}

static void on_timer_tick(uv_timer_t *timer)
{
    GuardRails *guard = timer->data;
    int64_t now_us = clock_now_us();
    if (!guard->options.is_active(guard->options.ctx)) {
        guard->loaded = false;
    } else if (!guard->loaded) {
        load(guard, now_us);
    } else {
        judge_all(guard, now_us);
    }
}

GuardRails *guard_rails_new(const GuardRailsOptions *options)
{
    GuardRails *guard = xcalloc(1, sizeof *guard);
    guard->options = *options;
    guard->rates = guard_rates_new();
    guard->levels = map_new(free);
    // clang-format off
    guard->paused = metrics_counter(options->metrics, "stentor_archiver_guard_pauses_total", "", "Tenants whose marketing e-mails were paused for bounces or complaints");
    guard->level[GUARD_WARN]  = metrics_gauge(options->metrics, "stentor_archiver_guard_tenants", "level=\"warn\"", "Tenants with more bounces or complaints than the limit of that level");
    guard->level[GUARD_PAUSE] = metrics_gauge(options->metrics, "stentor_archiver_guard_tenants", "level=\"pause\"", "Tenants with more bounces or complaints than the limit of that level");
    // clang-format on
    (void)uv_timer_init(options->loop, &guard->timer);
    guard->timer.data = guard;
    (void)uv_timer_start(
        &guard->timer, on_timer_tick, (uint64_t)options->every_ms, (uint64_t)options->every_ms);
    return guard;
}

static void on_timer_closed(uv_handle_t *handle)
{
    end_one(handle->data);
}

void guard_rails_stop(GuardRails *guard, void (*on_stopped)(void *ctx), void *ctx)
{
    guard->stopping = true;
    guard->on_stopped = on_stopped;
    guard->stopped_ctx = ctx;
    guard->under_way++; // the timer
    uv_close((uv_handle_t *)&guard->timer, on_timer_closed);
}

void guard_rails_free(GuardRails *guard)
{
    if (guard != NULL) {
        guard_rates_free(guard->rates);
        map_free(guard->levels);
        free(guard);
    }
}
