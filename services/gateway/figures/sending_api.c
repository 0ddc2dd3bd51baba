// SPDX-License-Identifier: Apache-2.0
// GET /v1/ops/deliverability and /v1/ops/slo.
#include <string.h>

#include "common/base/clock.h"
#include "services/gateway/figures/figures_internal.h"

enum {
    DAY_HOURS = 24,
    FEW = 50, // mails: below that a rate says nothing (the guard rails' number)
    TIMED_MAX = 100000,
    TARGET_S = 30,
    TARGET_S_MAX = 86400,
};

// What mailbox providers ask of senders: Gmail's and Yahoo's rules say below 0.1 %, never 0.3 %, of
// complaints; of bounces they name no number, the guard rails' count (services/archiver/GUARD.md).
static const double COMPLAINTS_WARN = 0.001, COMPLAINTS_OVER = 0.003;
static const double BOUNCES_WARN = 0.02, BOUNCES_OVER = 0.05;
static const double OBJECTIVE = 0.999; // of notifications are served within the target

// clang-format off
static const DbStatement DELIVERABILITY = {"deliverability",
    "SELECT name, provider, sent, delivered, bounced, complained"
    " FROM stentor.deliverability($1::text, $2::timestamptz, $3::timestamptz, $4::text) ORDER BY sent DESC, name, provider LIMIT 1000"};
static const DbStatement TIMES = {"service_times",
    "SELECT notifications, served, sent, failed, open, oldest, queued_p50, queued_p95, queued_p99, rendered_p50, rendered_p95, rendered_p99,"
    " sent_p50, sent_p95, sent_p99, whole_p50, whole_p95, whole_p99"
    " FROM stentor.service_times($1::text, $2::timestamptz, $3::timestamptz, make_interval(secs => $4::int4), $5::int4)"};
// clang-format on

static void set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

static json_t *number(const PGresult *rows, int column, int row)
{
    return db_is_null(rows, row, column) ? json_null()
                                         : json_integer((json_int_t)db_get_int(rows, row, column));
}

// ---- deliverability ----

static const char *level_of(int64_t sent, int64_t bounced, int64_t complained)
{
    double bounces = sent > 0 ? (double)bounced / (double)sent : 0;
    double complaints = sent > 0 ? (double)complained / (double)sent : 0;
    if (sent < FEW) {
        return "few";
    }
    if (complaints >= COMPLAINTS_OVER || bounces >= BOUNCES_OVER) {
        return "over";
    }
    return complaints >= COMPLAINTS_WARN || bounces >= BOUNCES_WARN ? "warn" : "good";
}

static json_t *row_json(const FiguresCall *figures, const PGresult *rows, int row)
{
    Str name = db_get_text(rows, row, 0);
    Str provider = db_get_text(rows, row, 1);
    int64_t sent = db_get_int(rows, row, 2);
    int64_t bounced = db_get_int(rows, row, 4);
    int64_t complained = db_get_int(rows, row, 5);
    bool vendor = str_eq(figures->by, STR("vendor"));
    json_t *object = json_object();
    set(object, vendor ? "vendor" : "from_domain", json_stringn(name.ptr, name.len));
    if (!vendor) {
        set(object, "provider", json_stringn(provider.ptr, provider.len));
    }
    set(object, "sent", json_integer((json_int_t)sent));
    set(object, "delivered", number(rows, 3, row));
    set(object, "bounced", json_integer((json_int_t)bounced));
    set(object, "complained", json_integer((json_int_t)complained));
    set(object, "bounce_rate", figures_share(bounced, sent));
    set(object, "complaint_rate", figures_share(complained, sent));
    set(object, "level", json_string(level_of(sent, bounced, complained)));
    return object;
}

static void on_deliverability(void *ctx, DbTxn *txn, const Error *err)
{
    const FiguresCall *figures = ctx;
    if (err != NULL) {
        api_answer_failure(figures->call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    json_t *data = json_array();
    for (int row = 0; row < db_rows(rows); row++) {
        (void)json_array_append_new(data, row_json(figures, rows, row));
    }
    json_t *answer = figures_frame(figures);
    set(answer, "limits",
        json_pack(
            "{s:f, s:f, s:f, s:f, s:i}", "complaint_rate_warn", COMPLAINTS_WARN,
            "complaint_rate_over", COMPLAINTS_OVER, "bounce_rate_warn", BOUNCES_WARN,
            "bounce_rate_over", BOUNCES_OVER, "few", (int)FEW));
    set(answer, "data", data);
    api_answer_json(figures->call, 200, answer);
}

static void get_deliverability(ApiCall *call)
{
    const FiguresApi *api = call->ctx;
    FiguresCall *figures = figures_read(call, DAY_HOURS, "domain vendor");
    if (figures == NULL) {
        return;
    }
    DbTxn *txn = db_txn_new(api->pool);
    DbParams *p = db_txn_add(txn, &DELIVERABILITY, NULL);
    figures_add(p, figures, true);
    db_text(p, figures->by);
    db_txn_submit(txn, on_deliverability, figures);
}

// ---- slo ----

typedef struct SloCall {
    FiguresCall *figures;
    int64_t target_s;
} SloCall;

static json_t *percentiles(const PGresult *rows, int first)
{
    return json_pack(
        "{s:o, s:o, s:o}", "p50_ms", number(rows, first, 0), "p95_ms", number(rows, first + 1, 0),
        "p99_ms", number(rows, first + 2, 0));
}

// What may be missed of so many, and what of it is left: 1 none is used, below 0 it is overdrawn.
static json_t *budget(int64_t notifications, int64_t served)
{
    double allowed = (1 - OBJECTIVE) * (double)notifications;
    int64_t missed = notifications - served;
    json_t *object = json_pack(
        "{s:f, s:f, s:I}", "objective", OBJECTIVE, "allowed", allowed, "missed",
        (json_int_t)missed);
    set(object, "left", allowed > 0 ? json_real(1 - (double)missed / allowed) : json_null());
    return object;
}

static void on_times(void *ctx, DbTxn *txn, const Error *err)
{
    const SloCall *slo = ctx;
    if (err != NULL) {
        api_answer_failure(slo->figures->call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int64_t notifications = db_get_int(rows, 0, 0);
    int64_t served = db_get_int(rows, 0, 1);
    char oldest[CLOCK_RFC3339_SIZE];
    clock_format(db_get_time(rows, 0, 5), oldest);
    json_t *answer = figures_frame(slo->figures);
    set(answer, "target_s", json_integer((json_int_t)slo->target_s));
    set(answer, "notifications", json_integer((json_int_t)notifications));
    set(answer, "served", json_integer((json_int_t)served));
    set(answer, "served_share", figures_share(served, notifications));
    set(answer, "sent", number(rows, 2, 0));
    set(answer, "failed", number(rows, 3, 0));
    set(answer, "open", number(rows, 4, 0));
    set(answer, "whole", json_boolean(notifications < TIMED_MAX));
    set(answer, "oldest_at", notifications > 0 ? json_string(oldest) : json_null());
    set(answer, "accepted_to_queued", percentiles(rows, 6));
    set(answer, "queued_to_rendered", percentiles(rows, 9));
    set(answer, "rendered_to_sent", percentiles(rows, 12));
    set(answer, "accepted_to_sent", percentiles(rows, 15));
    set(answer, "budget", budget(notifications, served));
    api_answer_json(slo->figures->call, 200, answer);
}

static bool read_target(ApiCall *call, int64_t *ret)
{
    Str text = http_query(call->http, "target_s");
    *ret = TARGET_S;
    return text.len == 0 || (str_to_i64(text, ret) && *ret >= 1 && *ret <= TARGET_S_MAX) ||
           api_refuse_field(call, "target_s", "a whole number from 1 to %d", (int)TARGET_S_MAX);
}

// What is younger than the target can still be served in time.
static void cut_span(SloCall *slo)
{
    int64_t ripe_us = slo->figures->call->http->received_at_us - slo->target_s * 1000000;
    slo->figures->before_us = slo->figures->before_us < ripe_us ? slo->figures->before_us : ripe_us;
}

static void get_slo(ApiCall *call)
{
    const FiguresApi *api = call->ctx;
    SloCall *slo = arena_zalloc(call->http->arena, sizeof *slo);
    slo->figures = figures_read(call, DAY_HOURS, NULL);
    if (slo->figures == NULL || !read_target(call, &slo->target_s)) {
        return;
    }
    cut_span(slo);
    DbTxn *txn = db_txn_new(api->pool);
    DbParams *p = db_txn_add(txn, &TIMES, NULL);
    figures_add(p, slo->figures, true);
    db_i32(p, (int32_t)slo->target_s);
    db_i32(p, TIMED_MAX);
    db_txn_submit(txn, on_times, slo);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/ops/deliverability", SCOPE_OPS_READ, get_deliverability, "from to by", false},
    {"GET", "/v1/ops/slo", SCOPE_OPS_READ, get_slo, "from to target_s", false},
};

void figures_sending_add(Api *api, FiguresApi *figures)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], figures);
}
