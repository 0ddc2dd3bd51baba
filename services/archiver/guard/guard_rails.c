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
#include "common/codec/suppressed.h"
#include "common/config/config_store.h"
#include "common/model/rules/mail_provider.h"
#include "services/archiver/guard/guard_origins.h"
#include "stentor/v1/status.pb-c.h"

enum {
    LOOKS_MAX = 16,     // entries of CONFIG that are read or stored at once
    PROVIDERS_MAX = 32, // a unit test counts them
};

#define DAY_US INT64_C(86400000000)

struct GuardRails {
    GuardRailsOptions options;
    GuardRates *rates;
    GuardOrigins *origins;
    Map *levels; // name of a scope -> GuardLevel that was logged
    uv_timer_t timer;
    bool loaded;
    size_t under_way;
    bool stopping;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *paused;
    Metric *level[GUARD_PAUSE + 1];
};

// A scope over a limit, on its way to CONFIG; owns its arena.
typedef struct Look {
    GuardRails *guard;
    Arena *arena;
    GuardScope scope;
    uint8_t hash[SUPPRESSION_HASH_LEN];
    char *subject;
    GuardVerdict verdict;
} Look;

static const DbStatement OUTCOMES = {
    "guard_outcomes",
    "SELECT tenant, from_domain, provider, step, sent, bounced, complained"
    " FROM stentor.recent_mail_outcomes($1::timestamptz)",
};

// ---- counting ----

static void note(
    GuardRails *guard, const GuardScope *scope, GuardOutcome what, uint64_t count, int64_t at_us)
{
    char name[GUARD_SCOPE_SIZE];
    GuardScope all = {scope->tenant, scope->from_domain, STR_EMPTY};
    guard_rates_note(guard->rates, guard_scope_name(scope, name), what, count, at_us);
    guard_rates_note(guard->rates, guard_scope_name(&all, name), what, count, at_us);
}

static void on_origin(void *ctx, const GuardScope *scope, GuardOutcome what, int64_t at_us)
{
    GuardRails *guard = ctx;
    if (guard->loaded) {
        note(guard, scope, what, 1, at_us);
    }
}

// "ntf.status.<tenant>.email.<status>"
static bool read_subject(Str subject, GuardOutcome *ret)
{
    static const struct {
        const char *status;
        GuardOutcome what;
    } rows[] = {{"sent", GUARD_SENT}, {"bounced", GUARD_BOUNCED}, {"complained", GUARD_COMPLAINED}};
    Str tenant, channel;
    Str rest = str_slice(subject, sizeof "ntf.status." - 1, subject.len);
    Str prefix = str_slice(subject, 0, sizeof "ntf.status." - 1);
    if (!str_eq(prefix, STR("ntf.status.")) || !str_split(&rest, '.', &tenant) ||
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

void guard_rails_note(GuardRails *guard, const BusMessage *message, Arena *arena)
{
    GuardOutcome what;
    if (!guard->loaded || !read_subject(message->subject, &what)) {
        return;
    }
    const Stentor__V1__NotificationStatus *event =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, NULL);
    if (event == NULL || event->meta == NULL) {
        return; // the fold has said so
    }
    GuardScope scope = {
        str_from(event->meta->tenant), str_from(event->from_domain), str_from(event->provider)};
    if (scope.from_domain.len > 0 && scope.provider.len > 0) {
        note(guard, &scope, what, 1, message->stored_at_us);
    } else if (what != GUARD_SENT) {
        guard_origins_want(
            guard->origins, scope.tenant, str_from(event->meta->notification_id), what,
            message->stored_at_us);
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
        GuardScope scope = {
            db_get_text(rows, row, 0), db_get_text(rows, row, 1), db_get_text(rows, row, 2)};
        int64_t at_us = db_get_time(rows, row, 3);
        for (int what = GUARD_SENT; what < GUARD_OUTCOMES; what++) {
            note(
                guard, &scope, (GuardOutcome)what, (uint64_t)db_get_int(rows, row, 4 + what),
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
    guard_origins_clear(guard->origins); // history has them
    DbTxn *txn = db_txn_new(guard->options.pool);
    db_time(db_txn_add(txn, &OUTCOMES, NULL), now_us - DAY_US);
    guard->under_way++;
    db_txn_submit(txn, on_outcomes, guard);
}

// ---- judging ----

// Of all providers together: less those that are over a limit by themselves.
static GuardVerdict judge(
    const GuardRails *guard, const GuardScope *scope, int64_t since_us, int64_t now_us)
{
    char name[GUARD_SCOPE_SIZE];
    char names[PROVIDERS_MAX][GUARD_SCOPE_SIZE];
    Str without[PROVIDERS_MAX];
    GuardQuestion whole = {
        .scope = guard_scope_name(scope, name),
        .without = without,
        .since_us = since_us,
        .now_us = now_us,
    };
    const char *provider;
    for (size_t i = 0; scope->provider.len == 0 && i < PROVIDERS_MAX &&
                       (provider = mail_provider_name(i)) != NULL;
         i++) {
        GuardScope part = {scope->tenant, scope->from_domain, str_from(provider)};
        GuardQuestion alone = {
            .scope = guard_scope_name(&part, names[whole.without_count]), .now_us = now_us};
        if (guard_rates_judge(guard->rates, &alone, &guard->options.limits).level == GUARD_PAUSE) {
            without[whole.without_count++] = alone.scope;
        }
    }
    return guard_rates_judge(guard->rates, &whole, &guard->options.limits);
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

static Str provider_word(const GuardScope *scope)
{
    return scope->provider.len > 0 ? scope->provider : STR("all");
}

static void on_pause_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    Look *look = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "marketing was not paused; trying again",
            log_str("tenant", look->scope.tenant), log_error(err));
    } else if (!duplicate) {
        metric_add(look->guard->paused, 1);
        LOG(LOG_ERROR, "marketing e-mails of a tenant are paused: too many bounces or complaints",
            log_str("tenant", look->scope.tenant), log_str("from_domain", look->scope.from_domain),
            log_str("provider", provider_word(&look->scope)),
            log_text("of", word_of(look->verdict.of)), log_int("bad", (int64_t)look->verdict.bad),
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
        .tenant = look->scope.tenant,
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .hash = look->hash,
        .reason = SUPPRESSION_RATE_LIMIT,
        .at_us = now_us,
        .by = STR("guard"),
        .note = str_from(arena_printf(
            look->arena, "%llu %s of %llu e-mails from " STR_FMT " to " STR_FMT " in %lld h",
            (unsigned long long)verdict->bad, word_of(verdict->of),
            (unsigned long long)verdict->sent, STR_ARG(look->scope.from_domain),
            STR_ARG(provider_word(&look->scope)),
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
    look->verdict = judge(guard, &look->scope, since_us, now_us);
    if (err != NULL || in_force || look->verdict.level != GUARD_PAUSE || guard->stopping) {
        end_look(look);
    } else {
        pause_marketing(look, sequence, now_us);
    }
}

static void look_at(GuardRails *guard, const GuardScope *scope)
{
    char key[SUPPRESSION_KEY_SIZE];
    Arena *arena = arena_new(0);
    Look *look = arena_zalloc(arena, sizeof *look);
    *look = (Look){
        .guard = guard,
        .arena = arena,
        .scope =
            {arena_str(arena, scope->tenant), arena_str(arena, scope->from_domain),
             arena_str(arena, scope->provider)},
        .subject = arena_alloc(arena, SUBJECT_SIZE),
    };
    mail_scope_hash(scope->from_domain, scope->provider, look->hash);
    suppression_key(key, CHANNEL_EMAIL, CATEGORY_MARKETING, look->hash);
    subject_config(look->subject, "suppression", look->scope.tenant, str_from(key));
    guard->under_way++;
    config_read(guard->options.bus, look->subject, arena, on_entry_read, look);
}

// ---- the clock ----

static void log_level(
    GuardRails *guard, Str name, const GuardScope *scope, const GuardVerdict *verdict)
{
    GuardLevel *was = map_get(guard->levels, name);
    if (was == NULL) {
        was = xcalloc(1, sizeof *was);
        map_put(guard->levels, name, was);
    }
    if (verdict->level == GUARD_WARN && *was == GUARD_FINE) {
        LOG(LOG_WARN, "many of a tenant's e-mails bounce or are complained about",
            log_str("tenant", scope->tenant), log_str("from_domain", scope->from_domain),
            log_str("provider", provider_word(scope)), log_text("of", word_of(verdict->of)),
            log_int("bad", (int64_t)verdict->bad), log_int("sent", (int64_t)verdict->sent));
    }
    *was = verdict->level;
}

static void judge_all(GuardRails *guard, int64_t now_us)
{
    size_t cursor = 0;
    double counts[GUARD_PAUSE + 1] = {0};
    for (Str name; guard_rates_next(guard->rates, &cursor, &name);) {
        GuardScope scope = guard_scope_read(name);
        GuardVerdict verdict = judge(guard, &scope, 0, now_us);
        counts[verdict.level]++;
        log_level(guard, name, &scope, &verdict);
        if (verdict.level == GUARD_PAUSE && guard->under_way < LOOKS_MAX &&
            bus_connected(guard->options.bus)) {
            look_at(guard, &scope);
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
        guard_origins_look_up(guard->origins);
        judge_all(guard, now_us);
    }
}

GuardRails *guard_rails_new(const GuardRailsOptions *options)
{
    GuardRails *guard = xcalloc(1, sizeof *guard);
    guard->options = *options;
    guard->rates = guard_rates_new();
    guard->origins = guard_origins_new(options->pool, on_origin, guard);
    guard->levels = map_new(free);
    // clang-format off
    guard->paused = metrics_counter(options->metrics, "stentor_archiver_guard_pauses_total", "", "Pauses of a tenant's marketing e-mails for bounces or complaints");
    guard->level[GUARD_WARN]  = metrics_gauge(options->metrics, "stentor_archiver_guard_scopes", "level=\"warn\"", "From domains of tenants, by provider and in all, with more bounces or complaints than the limit of that level");
    guard->level[GUARD_PAUSE] = metrics_gauge(options->metrics, "stentor_archiver_guard_scopes", "level=\"pause\"", "From domains of tenants, by provider and in all, with more bounces or complaints than the limit of that level");
    // clang-format on
    (void)uv_timer_init(options->loop, &guard->timer);
    guard->timer.data = guard;
    (void)uv_timer_start(
        &guard->timer, on_timer_tick, (uint64_t)options->every_ms, (uint64_t)options->every_ms);
    return guard;
}

static void on_origins_stopped(void *ctx)
{
    end_one(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    GuardRails *guard = handle->data;
    guard_origins_stop(guard->origins, on_origins_stopped, guard);
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
        guard_origins_free(guard->origins);
        map_free(guard->levels);
        free(guard);
    }
}
