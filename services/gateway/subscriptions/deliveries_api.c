// SPDX-License-Identifier: Apache-2.0
// GET /v1/subscriptions/{id}/deliveries, /v1/deliveries/{id}: what was posted to a tenant's
// endpoints, and what became of it.
#include <inttypes.h>

#include "common/api/page.h"
#include "common/webhooks/webhook_state.h"
#include "services/gateway/subscriptions/delivery_view.h"
#include "services/gateway/subscriptions/subscriptions_api.h"

static const int64_t DAY_US = INT64_C(86400) * 1000000;

// One call on its way; lives in the request's arena.
typedef struct ListCall {
    ApiCall *base;
    Page page;
    DeliveryFilter filter;
} ListCall;

// ---- the list ----

static const char *position_of(const ListCall *list, int64_t created_at_us, Str id)
{
    return arena_printf(
        list->base->http->arena, "%" PRId64 "/" STR_FMT, created_at_us, STR_ARG(id));
}

// One row more than fits was asked for. A page with a filter may have fewer rows than fit, and
// still not be the last: behind it the next page looks on.
static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    const ListCall *list = ctx;
    Arena *arena = list->base->http->arena;
    if (err != NULL) {
        api_answer_failure(list->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    size_t count = (size_t)db_rows(rows);
    const char *next = "";
    Str stop_id = STR_EMPTY;
    int64_t stop_us = 0;
    json_t *data = json_array();
    for (size_t i = 0; i < count && i < list->page.limit; i++) {
        DeliveryRow row = delivery_row(rows, (int)i, arena);
        (void)json_array_append_new(data, delivery_view(&row));
        next = position_of(list, row.created_at_us, row.id);
    }
    if (count <= list->page.limit) {
        bool stopped = delivery_filter_is_given(&list->filter) &&
                       delivery_stop(db_txn_result(txn, 1), &stop_us, &stop_id);
        next = stopped ? position_of(list, stop_us, stop_id) : "";
    }
    page_answer(list->base, data, str_from(next));
}

static bool read_filter(ListCall *list)
{
    const HttpRequest *http = list->base->http;
    DeliveryFilter *filter = &list->filter;
    filter->state = http_query(http, "state");
    filter->type = http_query(http, "event");
    filter->notification_id = http_query(http, "notification_id");
    if (filter->state.len > 0 && !delivery_is_state(filter->state)) {
        return api_refuse_field(list->base, "state", "not one of " WEBHOOK_STATES);
    }
    bool test = str_eq(filter->type, STR(WEBHOOK_TEST));
    if (filter->type.len > 0 && !test &&
        (!webhook_is_filter(filter->type) || str_ends(filter->type, STR("*")))) {
        return api_refuse_field(
            list->base, "event", "not an event such as 'notification.delivered'");
    }
    if (filter->notification_id.len > 0 && !id_parse(filter->notification_id, "ntf_", NULL)) {
        return api_refuse_field(list->base, "notification_id", "not 'ntf_' and a ULID");
    }
    return true;
}

// "<created, us>/<id>", as a cursor holds it; nothing of it comes from the caller.
static bool read_position(const ListCall *list, int64_t *ret_us, Str *ret_id)
{
    Str rest = list->page.after;
    Str at = STR_EMPTY;
    *ret_us = list->base->http->received_at_us + DAY_US;
    *ret_id = STR_EMPTY;
    if (rest.len == 0) {
        return true;
    }
    bool ok = str_split(&rest, '/', &at) && str_to_i64(at, ret_us);
    *ret_id = rest;
    return ok;
}

static void get_deliveries(ApiCall *base)
{
    const SubscriptionsApi *api = base->ctx;
    ListCall *list = arena_zalloc(base->http->arena, sizeof *list);
    int64_t before_us = 0;
    Str before_id = STR_EMPTY;
    list->base = base;
    if (!subscription_is_known(base, base->params[0]) || !read_filter(list) ||
        !page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &list->page)) {
        return;
    }
    if (!read_position(list, &before_us, &before_id)) {
        api_answer_parameter(base, "cursor", "not a cursor of this list");
        return;
    }
    DbTxn *txn = db_txn_new(api->pool);
    delivery_add_list(
        txn, str_from(base->tenant), base->params[0], &list->filter, before_us, before_id,
        (int)list->page.limit + 1);
    db_txn_submit(txn, on_listed, list);
}

// ---- one of them ----

void delivery_answer_unknown(ApiCall *call)
{
    Str shown = str_slice(call->params[0], 0, DELIVERY_ID_MAX);
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "delivery '" STR_FMT "' of tenant '%s'", STR_ARG(shown),
                  call->tenant));
}

static void on_read(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        delivery_answer_unknown(call);
    } else {
        DeliveryRow row = delivery_row(db_txn_result(txn, 0), 0, call->http->arena);
        api_answer_json(call, 200, delivery_view_whole(&row));
    }
}

static void get_delivery(ApiCall *call)
{
    const SubscriptionsApi *api = call->ctx;
    if (call->params[0].len > DELIVERY_ID_MAX) {
        delivery_answer_unknown(call);
        return;
    }
    DbTxn *txn = db_txn_new(api->pool);
    delivery_add_one(txn, str_from(call->tenant), call->params[0]);
    db_txn_submit(txn, on_read, call);
}

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/subscriptions/{}/deliveries", SCOPE_SUBSCRIPTIONS_READ, get_deliveries,
     "limit cursor state event notification_id", false},
    {"GET", "/v1/deliveries/{}", SCOPE_SUBSCRIPTIONS_READ, get_delivery, NULL, false},
};
// clang-format on

void deliveries_api_add(Api *api, SubscriptionsApi *subscriptions)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], subscriptions);
}
