// SPDX-License-Identifier: Apache-2.0
// GET /v1/usage and /v1/limits: what a tenant has sent, at what cost, and what it may still send.
#include <string.h>

#include "services/gateway/figures/figures_internal.h"

enum { WEEK_HOURS = 7 * 24 };

// clang-format off
static const DbStatement COUNTS = {"usage_counts",
    "SELECT key, notifications, waiting, sent, delivered, failed, suppressed, bounced, complained"
    " FROM stentor.usage_counts($1::text, $2::timestamptz, $3::timestamptz, $4::text) ORDER BY key"};
static const DbStatement COSTS = {"usage_costs",
    "SELECT key, currency, messages, segments, cost_micros, estimated_micros, unpriced"
    " FROM stentor.usage_costs($1::text, $2::timestamptz, $3::timestamptz, $4::text) ORDER BY key, currency"};
static const DbStatement USED = {"limits_used",
    "SELECT subject, minute_used, day_used FROM ingest.limits_used($1::text)"};
static const char *const COUNTED[] = {"notifications", "waiting", "sent", "delivered", "failed", "suppressed", "bounced", "complained"};
// clang-format on
enum { COUNTED_COUNT = sizeof COUNTED / sizeof COUNTED[0] };

// ---- usage ----

static json_t *number(const PGresult *rows, int row, int column)
{
    return json_integer((json_int_t)db_get_int(rows, row, column));
}

static json_t *text(const PGresult *rows, int row, int column)
{
    Str value = db_get_text(rows, row, column);
    return json_stringn(value.ptr != NULL ? value.ptr : "", value.len);
}

// The costs of the group whose rows begin at *at; moves it behind them.
static void add_costs(json_t *object, const PGresult *rows, Str key, int *at)
{
    int64_t messages = 0;
    int64_t segments = 0;
    int64_t unpriced = 0;
    json_t *costs = json_array();
    for (; *at < db_rows(rows) && str_eq(db_get_text(rows, *at, 0), key); ++*at) {
        messages += db_get_int(rows, *at, 2);
        segments += db_get_int(rows, *at, 3);
        unpriced += db_get_int(rows, *at, 6);
        if (db_get_text(rows, *at, 1).len > 0) {
            json_t *cost = json_object();
            (void)json_object_set_new(cost, "currency", text(rows, *at, 1));
            (void)json_object_set_new(cost, "cost", figures_amount(db_get_int(rows, *at, 4)));
            (void)json_object_set_new(cost, "estimated", figures_amount(db_get_int(rows, *at, 5)));
            (void)json_array_append_new(costs, cost);
        }
    }
    (void)json_object_set_new(object, "messages", json_integer((json_int_t)messages));
    (void)json_object_set_new(object, "segments", json_integer((json_int_t)segments));
    (void)json_object_set_new(object, "costs", costs);
    (void)json_object_set_new(object, "unpriced", json_integer((json_int_t)unpriced));
}

static void on_usage(void *ctx, DbTxn *txn, const Error *err)
{
    const FiguresCall *figures = ctx;
    if (err != NULL) {
        api_answer_failure(figures->call, err);
        return;
    }
    const PGresult *counts = db_txn_result(txn, 0);
    const PGresult *costs = db_txn_result(txn, 1);
    int at = 0;
    json_t *data = json_array();
    for (int row = 0; row < db_rows(counts); row++) {
        json_t *object = json_object();
        Str key = db_get_text(counts, row, 0);
        const char *by = arena_cstr(figures->call->http->arena, figures->by);
        (void)json_object_set_new(object, by, text(counts, row, 0));
        for (int i = 0; i < (int)COUNTED_COUNT; i++) {
            (void)json_object_set_new(object, COUNTED[i], number(counts, row, i + 1));
        }
        add_costs(object, costs, key, &at);
        (void)json_array_append_new(data, object);
    }
    json_t *answer = figures_frame(figures);
    (void)json_object_set_new(answer, "data", data);
    api_answer_json(figures->call, 200, answer);
}

static void get_usage(ApiCall *call)
{
    static const DbStatement *const QUESTIONS[] = {&COUNTS, &COSTS};
    const FiguresApi *api = call->ctx;
    FiguresCall *figures = figures_read(call, WEEK_HOURS, "day channel category");
    if (figures == NULL) {
        return;
    }
    DbTxn *txn = db_txn_new(api->pool);
    for (size_t i = 0; i < 2; i++) {
        DbParams *p = db_txn_add(txn, QUESTIONS[i], NULL);
        figures_add(p, figures, false);
        db_text(p, figures->by);
    }
    db_txn_submit(txn, on_usage, figures);
}

// ---- limits ----

static json_t *window(uint32_t limit, int64_t used)
{
    return json_pack(
        "{s:I, s:I, s:I}", "limit", (json_int_t)limit, "used", (json_int_t)used, "left",
        (json_int_t)(used < (int64_t)limit ? (int64_t)limit - used : 0));
}

// NULL: there is no limit.
static json_t *windows(const Limits *limits, int64_t minute_used, int64_t day_used)
{
    if (!limits_any(limits)) {
        return NULL;
    }
    json_t *object = json_object();
    if (limits->per_minute > 0) {
        (void)json_object_set_new(object, "per_minute", window(limits->per_minute, minute_used));
    }
    if (limits->per_day > 0) {
        (void)json_object_set_new(object, "per_day", window(limits->per_day, day_used));
    }
    return object;
}

// Each recipient's is counted by itself, so there is nothing used to show.
static json_t *bounds(const Limits *limits)
{
    return limits_any(limits) ? json_pack(
                                    "{s:I, s:I}", "per_minute", (json_int_t)limits->per_minute,
                                    "per_day", (json_int_t)limits->per_day)
                              : NULL;
}

static void used_of(
    const PGresult *rows, const char *subject, int64_t *ret_minute, int64_t *ret_day)
{
    *ret_minute = *ret_day = 0;
    for (int row = 0; row < db_rows(rows); row++) {
        if (str_eq(db_get_text(rows, row, 0), str_from(subject))) {
            *ret_minute = db_get_int(rows, row, 1);
            *ret_day = db_get_int(rows, row, 2);
        }
    }
}

static void set(json_t *object, const char *name, json_t *value)
{
    if (value != NULL) {
        (void)json_object_set_new(object, name, value);
    }
}

static json_t *limits_json(const GateTenant *gate, const PGresult *rows, Arena *arena)
{
    int64_t minute = 0;
    int64_t day = 0;
    json_t *channels = json_object();
    json_t *recipient_channels = json_object();
    used_of(rows, "", &minute, &day);
    json_t *tenant = windows(&gate->limits, minute, day);
    for (Channel channel = CHANNEL_NONE + 1; channel < CHANNEL_COUNT; channel++) {
        const char *name = channel_name(channel);
        used_of(rows, arena_printf(arena, ":%s", name), &minute, &day);
        set(channels, name, windows(&gate->channel_limits[channel], minute, day));
        set(recipient_channels, name, bounds(&gate->recipient_channel_limits[channel]));
    }
    json_t *recipient = bounds(&gate->recipient_limits);
    json_t *answer = json_object();
    set(answer, "tenant", tenant != NULL ? tenant : json_null());
    set(answer, "channels", channels);
    set(answer, "recipient", recipient != NULL ? recipient : json_null());
    set(answer, "recipient_channels", recipient_channels);
    set(answer, "over_limit",
        json_string(gate->over_limit == OVER_LIMIT_SUPPRESS ? "suppress" : "defer"));
    return answer;
}

static void on_used(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    const FiguresApi *api = call->ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    const TenantSettings *settings = catalog_tenant(api->catalog, str_from(call->tenant));
    api_answer_json(
        call, 200, limits_json(&settings->gate, db_txn_result(txn, 0), call->http->arena));
}

static void get_limits(ApiCall *call)
{
    const FiguresApi *api = call->ctx;
    DbTxn *txn = db_txn_new(api->pool);
    db_text(db_txn_add(txn, &USED, NULL), str_from(call->tenant));
    db_txn_submit(txn, on_used, call);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/usage", SCOPE_TENANT_READ, get_usage, "from to by", false},
    {"GET", "/v1/limits", SCOPE_TENANT_READ, get_limits, NULL, false},
};

void figures_usage_add(Api *api, FiguresApi *figures)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], figures);
}
