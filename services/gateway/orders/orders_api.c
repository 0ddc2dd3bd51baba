// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/orders/orders_api.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/orders/machine.h"
#include "common/orders/uuid.h"

enum { TRANSITIONS_MAX = 1000 };

static const int64_t ahead_us = INT64_C(86400000000);

// clang-format off
static const DbStatement LISTED = {"orders_listed",
    "SELECT at, correlation_id::text, order_id::text, basket_id::text, state, total, currency, placed_at, finished_at, next_attempt_at,"
    " attempts, version FROM stentor.orders_listed($1::text, $2::text, $3::timestamptz, $4::text::uuid, $5::int4)"};
static const DbStatement SHOWN = {"order_shown",
    "SELECT NULL::timestamptz, correlation_id, order_id, basket_id, state, total, currency, placed_at, finished_at, next_attempt_at,"
    " attempts, version, archived FROM stentor.order_shown($1::text, $2::text::uuid)"};
static const DbStatement TRANSITIONS = {"order_transitions",
    "SELECT event, verdict, from_state, to_state, at, message_id, reason"
    " FROM stentor.order_transitions($1::text, $2::text::uuid, $3::int4)"};
// clang-format on
enum {
    COLUMN_AT,
    COLUMN_ID,
    COLUMN_ORDER_ID,
    COLUMN_BASKET,
    COLUMN_STATE,
    COLUMN_TOTAL,
    COLUMN_CURRENCY,
    COLUMN_PLACED,
    COLUMN_FINISHED,
    COLUMN_NEXT,
    COLUMN_ATTEMPTS,
    COLUMN_VERSION,
    COLUMN_ARCHIVED,
};

// One call on its way; lives in the request's arena.
typedef struct Call {
    ApiCall *base;
    const OrdersApi *api;
    Page page;
} Call;

static Call *new_call(ApiCall *base)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    *call = (Call){.base = base, .api = base->ctx};
    return call;
}

// ---- as JSON ----

static void set_text(json_t *object, const char *name, Str value)
{
    if (value.len > 0) {
        (void)json_object_set_new(object, name, json_stringn(value.ptr, value.len));
    }
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us != 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static json_t *order_json(const PGresult *rows, int row)
{
    json_t *order = json_object();
    set_text(order, "correlation_id", db_get_text(rows, row, COLUMN_ID));
    set_text(order, "order_id", db_get_text(rows, row, COLUMN_ORDER_ID));
    set_text(order, "basket_id", db_get_text(rows, row, COLUMN_BASKET));
    set_text(order, "state", db_get_text(rows, row, COLUMN_STATE));
    set_text(order, "total", db_get_text(rows, row, COLUMN_TOTAL));
    set_text(order, "currency", db_get_text(rows, row, COLUMN_CURRENCY));
    set_time(order, "placed_at", db_get_time(rows, row, COLUMN_PLACED));
    set_time(order, "finished_at", db_get_time(rows, row, COLUMN_FINISHED));
    set_time(order, "next_attempt_at", db_get_time(rows, row, COLUMN_NEXT));
    (void)json_object_set_new(
        order, "attempts", json_integer(db_get_int(rows, row, COLUMN_ATTEMPTS)));
    (void)json_object_set_new(
        order, "version", json_integer(db_get_int(rows, row, COLUMN_VERSION)));
    return order;
}

static json_t *transitions_json(const PGresult *rows)
{
    static const char *const names[] = {"event", "verdict", "from", "to"};
    json_t *list = json_array();
    for (int i = 0; i < db_rows(rows); i++) {
        json_t *transition = json_object();
        for (int column = 0; column < 4; column++) {
            set_text(transition, names[column], db_get_text(rows, i, column));
        }
        set_time(transition, "at", db_get_time(rows, i, 4));
        set_text(transition, "message_id", db_get_text(rows, i, 5));
        set_text(transition, "reason", db_get_text(rows, i, 6));
        (void)json_array_append_new(list, transition);
    }
    return list;
}

// ---- GET /v1/orders ----

// One row more than fits was asked for.
static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    const Call *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    size_t count = (size_t)db_rows(rows);
    size_t shown = count < call->page.limit ? count : call->page.limit;
    Str last = STR_EMPTY;
    json_t *list = json_array();
    for (int i = 0; i < (int)shown; i++) {
        (void)json_array_append_new(list, order_json(rows, i));
        last = str_from(arena_printf(
            call->base->http->arena, "%" PRId64 "/" STR_FMT, db_get_time(rows, i, COLUMN_AT),
            STR_ARG(db_get_text(rows, i, COLUMN_ID))));
    }
    page_answer(call->base, list, count > shown ? last : STR_EMPTY);
}

// "<time, us>/<correlation id>", as a cursor holds it; nothing of it comes from the caller.
static bool read_position(const Call *call, int64_t *ret_until_us, Str *ret_id)
{
    Str us = STR_EMPTY;
    Str rest = call->page.after;
    *ret_until_us = call->base->http->received_at_us + ahead_us;
    *ret_id = STR("00000000-0000-0000-0000-000000000000");
    if (rest.len == 0) {
        return true;
    }
    bool good = str_split(&rest, '/', &us) && str_to_i64(us, ret_until_us);
    *ret_id = good ? rest : *ret_id;
    return good;
}

static void list_orders(ApiCall *base)
{
    Call *call = new_call(base);
    OrderState known;
    int64_t until_us = 0;
    Str before = STR_EMPTY;
    Str state = http_query(base->http, "state");
    state = state.len > 0 ? state : STR("Placed");
    if (!order_state_from_name(state, &known) || known == ORDER_NONE) {
        (void)api_refuse_field(base, "state", "not one of Placed, Completed, Cancelled, Failed");
        return;
    }
    if (!page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &call->page)) {
        return;
    }
    if (!read_position(call, &until_us, &before)) {
        api_answer_parameter(base, "cursor", "not a cursor of this list");
        return;
    }
    DbTxn *txn = db_txn_new(call->api->pool);
    DbParams *p = db_txn_add(txn, &LISTED, NULL);
    db_text(p, str_from(base->tenant));
    db_text(p, state);
    db_time(p, until_us);
    db_text(p, before);
    db_i32(p, (int32_t)call->page.limit + 1);
    db_txn_submit(txn, on_listed, call);
}

// ---- GET /v1/orders/{} ----

static void answer_missing(const Call *call)
{
    api_answer_missing(
        call->base, arena_printf(
                        call->base->http->arena, "order '" STR_FMT "'",
                        STR_ARG(str_slice(call->base->params[0], 0, 64))));
}

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    const Call *call = ctx;
    Arena *arena = call->base->http->arena;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    if (db_rows(rows) == 0) {
        answer_missing(call);
        return;
    }
    json_t *order = order_json(rows, 0);
    (void)json_object_set_new(
        order, "archived", json_boolean(db_get_int(rows, 0, COLUMN_ARCHIVED) != 0));
    (void)json_object_set_new(order, "transitions", transitions_json(db_txn_result(txn, 1)));
    char *text = json_dumps(order, JSON_COMPACT);
    Str whole = str_from(text);
    Str open = str_slice(whole, 0, whole.len - 1); // the notifications are its last member
    Str before = str_from(arena_printf(arena, STR_FMT ",\"notifications\":", STR_ARG(open)));
    Str correlation = arena_str(arena, db_get_text(rows, 0, COLUMN_ID));
    free(text);
    json_decref(order);
    find_list_embed(call->base, call->api->find, FIND_BY_CORRELATION, correlation, before);
}

static void get_order(ApiCall *base)
{
    Call *call = new_call(base);
    char id[UUID_SIZE];
    if (!uuid_read(base->params[0], id)) {
        answer_missing(call);
        return;
    }
    DbTxn *txn = db_txn_new(call->api->pool);
    DbParams *p = db_txn_add(txn, &SHOWN, NULL);
    db_text(p, str_from(base->tenant));
    db_text(p, arena_str(base->http->arena, str_from(id)));
    p = db_txn_add(txn, &TRANSITIONS, NULL);
    db_text(p, str_from(base->tenant));
    db_text(p, arena_str(base->http->arena, str_from(id)));
    db_i32(p, TRANSITIONS_MAX);
    db_txn_submit(txn, on_shown, call);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/orders", SCOPE_NOTIFICATIONS_READ, list_orders, "limit cursor state", false},
    {"GET", "/v1/orders/{}", SCOPE_NOTIFICATIONS_READ, get_order, "limit cursor", false},
};

void orders_api_add(Api *api, OrdersApi *orders)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], orders);
}
