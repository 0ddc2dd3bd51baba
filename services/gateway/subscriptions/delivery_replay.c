// SPDX-License-Identifier: Apache-2.0
// /v1/deliveries/{id}/replay, /v1/subscriptions/{id}/recover and test: events on HOOK, which the
// delivering process posts. A replay is the next turn of its delivery, and its event's id is
// derived from both: killed in the middle, or called twice, a repeat makes no second post of a
// turn.
#include <stdio.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/webhooks/webhook_event.h"
#include "common/webhooks/webhook_state.h"
#include "services/gateway/subscriptions/delivery_view.h"
#include "services/gateway/subscriptions/subscriptions_api.h"

enum { PAGE_ROWS = 200, RECOVER_MAX = 10000 };

typedef Stentor__V1__WebhookDelivery WebhookDelivery;

// One call on its way; lives in the request's arena.
typedef struct Again {
    ApiCall *base;
    const SubscriptionsApi *api;
    void (*done)(struct Again *again); // all of this round are stored
    size_t waiting;                    // for acks
    size_t posted;
    size_t round;   // how many were in it
    bool gathering; // the round is not whole yet
    Error failure;
    const char *delivery_id; // of replay and test
    int64_t after_us;        // of recover: behind which the next page begins
    char after_id[DELIVERY_ID_MAX + 1];
} Again;

static Again *new_call(ApiCall *base, void (*done)(Again *again))
{
    Again *again = arena_zalloc(base->http->arena, sizeof *again);
    again->base = base;
    again->api = base->ctx;
    again->done = done;
    return again;
}

// ---- publishing ----

static void settle(Again *again)
{
    if (again->waiting > 0 || again->gathering) {
        return;
    }
    if (again->failure.kind != ERROR_NONE) {
        api_answer_failure(again->base, &again->failure);
    } else {
        again->done(again);
    }
}

static void on_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Again *again = ctx;
    (void)sequence, (void)duplicate;
    again->waiting--;
    if (err != NULL && again->failure.kind == ERROR_NONE) {
        again->failure = *err;
    }
    settle(again);
}

static void publish(Again *again, WebhookDelivery *delivery, Arena *arena)
{
    BusOut out;
    if (!webhook_event(delivery, STR_EMPTY, arena, &out, &again->failure)) {
        return;
    }
    again->waiting++;
    again->posted++;
    bus_publish(again->api->bus, &out, on_acked, again);
}

// The delivery's next turn. One that has ended has all its attempts again. One that waits goes on
// counting them, and is a turn ahead of the one that waits on DEFERRED, which then is an old one.
static void publish_turn(Again *again, const DeliveryRow *row, Arena *arena)
{
    WebhookDelivery delivery;
    bool waits = webhook_state_from_name(row->state) == WEBHOOK_WAITING;
    stentor__v1__webhook_delivery__init(&delivery);
    Stentor__V1__Meta meta = meta_make(&(MetaSpec){
        .tenant = again->base->tenant,
        .notification_id = arena_cstr(arena, row->notification_id),
        .at_us = row->created_at_us,
    });
    delivery.meta = &meta;
    delivery.subscription_id = arena_cstr(arena, row->subscription_id);
    delivery.delivery_id = arena_cstr(arena, row->id);
    delivery.webhook_id = arena_cstr(arena, row->event_id);
    delivery.type = arena_cstr(arena, row->type);
    delivery.payload = pb_data(row->payload);
    delivery.sequence = (uint64_t)row->sequence;
    delivery.previous_webhook_id = arena_cstr(arena, row->previous_event_id);
    delivery.in_order = row->ordered;
    delivery.matched_at_us = row->created_at_us;
    delivery.turn = (uint32_t)row->turn + (waits ? 2 : 1);
    delivery.attempt = waits ? (uint32_t)row->attempts : 0;
    publish(again, &delivery, arena);
}

// Its event was lost before it was ever claimed: what would be posted is nowhere.
static bool is_lost(const DeliveryRow *row)
{
    return str_eq(row->error, STR(WEBHOOK_GONE)) && str_eq(row->payload, STR(WEBHOOK_NO_PAYLOAD));
}

// ---- one again ----

static void answer_queued(Again *again)
{
    api_answer_json(
        again->base, 202,
        json_pack(
            "{s:s, s:s}", "id", again->delivery_id, "state", webhook_state_name(WEBHOOK_QUEUED)));
}

static void replay_row(Again *again, const DeliveryRow *row)
{
    ApiCall *call = again->base;
    if (!subscription_is_active_now(call, row->subscription_id)) {
        return;
    }
    WebhookState state = webhook_state_from_name(row->state);
    if (state == WEBHOOK_QUEUED || state == WEBHOOK_CLAIMED) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "delivery-under-way", "The delivery is on its way", NULL,
            "it is '" STR_FMT "'; what it comes to is shown in a moment. In order, one that stays "
            "so has lost its event, and ends as '" WEBHOOK_GONE "' when a later one waits for it",
            STR_ARG(row->state));
        return;
    }
    if (is_lost(row)) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "delivery-lost", "There is nothing to post", NULL,
            "its event was gone from the stream before it was posted; GET "
            "/v1/notifications/" STR_FMT " has the notification's statuses",
            STR_ARG(row->notification_id));
        return;
    }
    again->delivery_id = arena_cstr(call->http->arena, row->id);
    publish_turn(again, row, call->http->arena);
    settle(again);
}

static void on_row(void *ctx, DbTxn *txn, const Error *err)
{
    Again *again = ctx;
    if (err != NULL) {
        api_answer_failure(again->base, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        delivery_answer_unknown(again->base);
    } else {
        DeliveryRow row = delivery_row(db_txn_result(txn, 0), 0, again->base->http->arena);
        replay_row(again, &row);
    }
}

static void replay(ApiCall *call)
{
    if (call->params[0].len > DELIVERY_ID_MAX) {
        delivery_answer_unknown(call);
        return;
    }
    Again *again = new_call(call, answer_queued);
    DbTxn *txn = db_txn_new(again->api->pool);
    delivery_add_one(txn, str_from(call->tenant), call->params[0]);
    db_txn_submit(txn, on_row, again);
}

// ---- a test ----

static Str test_payload(const ApiCall *call)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(call->http->received_at_us, at);
    return str_from(arena_printf(
        call->http->arena,
        "{\"type\":\"" WEBHOOK_TEST "\",\"timestamp\":\"%s\",\"data\":{\"id\":\"" STR_FMT
        "\",\"tenant\":\"%s\"}}",
        at, STR_ARG(call->params[0]), call->tenant));
}

static void test(ApiCall *call)
{
    char event_id[EVENT_ID_SIZE], delivery_id[WEBHOOK_DELIVERY_ID_SIZE];
    Arena *arena = call->http->arena;
    WebhookDelivery delivery;
    if (!subscription_is_active_now(call, call->params[0])) {
        return;
    }
    Again *again = new_call(call, answer_queued);
    stentor__v1__webhook_delivery__init(&delivery);
    Stentor__V1__Meta meta =
        meta_make(&(MetaSpec){.tenant = call->tenant, .at_us = call->http->received_at_us});
    event_id_derive("webhook_test", call->params[0], str_from(call->http->id), event_id);
    webhook_delivery_id(call->params[0], str_from(event_id), delivery_id);
    again->delivery_id = arena_cstr(arena, str_from(delivery_id));
    delivery.meta = &meta;
    delivery.subscription_id = arena_cstr(arena, call->params[0]);
    delivery.delivery_id = delivery_id;
    delivery.webhook_id = event_id;
    delivery.type = pb_borrow(WEBHOOK_TEST);
    delivery.payload = pb_data(test_payload(call));
    delivery.matched_at_us = call->http->received_at_us;
    delivery.turn = 1;
    publish(again, &delivery, arena);
    settle(again);
}

// ---- all that failed ----

static void ask_page(Again *again);

static void answer_recovered(const Again *again, bool more)
{
    char at[CLOCK_RFC3339_SIZE];
    json_t *object = json_pack("{s:I}", "replayed", (json_int_t)again->posted);
    clock_format(again->after_us, at);
    (void)json_object_set_new(object, "next_since", more ? json_string(at) : json_null());
    api_answer_json(again->base, 202, object);
}

static void on_round(Again *again)
{
    bool whole = again->round == PAGE_ROWS;
    if (whole && again->posted < RECOVER_MAX) {
        ask_page(again);
    } else {
        answer_recovered(again, whole);
    }
}

static void on_page(void *ctx, DbTxn *txn, const Error *err)
{
    Again *again = ctx;
    if (err != NULL) {
        api_answer_failure(again->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    again->round = (size_t)db_rows(rows);
    again->gathering = true;
    Arena *arena = arena_new(0); // a page's; the request's lives for all
    for (size_t i = 0; i < again->round; i++) {
        DeliveryRow row = delivery_row(rows, (int)i, arena);
        again->after_us = row.created_at_us;
        (void)str_to_c(row.id, again->after_id, sizeof again->after_id);
        if (!is_lost(&row)) {
            publish_turn(again, &row, arena);
        }
    }
    arena_free(arena);
    again->gathering = false;
    settle(again);
}

static void ask_page(Again *again)
{
    DbTxn *txn = db_txn_new(again->api->pool);
    delivery_add_failed(
        txn, str_from(again->base->tenant), again->base->params[0], again->after_us,
        str_from(again->after_id), PAGE_ROWS);
    db_txn_submit(txn, on_page, again);
}

static bool read_since(Again *again)
{
    ApiBody body = {0};
    ApiCall *call = again->base;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        bool read = api_read_time(&body, "since", &again->after_us);
        if (read && (again->after_us <= 0 || again->after_us > call->http->received_at_us)) {
            (void)api_body_fail(&body, "since", "required: a time that has passed, in RFC 3339");
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void recover(ApiCall *call)
{
    Again *again = new_call(call, on_round);
    if (subscription_is_active_now(call, call->params[0]) && read_since(again)) {
        ask_page(again);
    }
}

// clang-format off
static const ApiRoute ROUTES[] = {
    {"POST", "/v1/deliveries/{}/replay", SCOPE_SUBSCRIPTIONS_WRITE, replay, NULL, false},
    {"POST", "/v1/subscriptions/{}/recover", SCOPE_SUBSCRIPTIONS_WRITE, recover, NULL, false},
    {"POST", "/v1/subscriptions/{}/test", SCOPE_SUBSCRIPTIONS_WRITE, test, NULL, false},
};
// clang-format on

void delivery_replay_add(Api *api, SubscriptionsApi *subscriptions)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], subscriptions);
}
