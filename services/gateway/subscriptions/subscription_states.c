// SPDX-License-Identifier: Apache-2.0
// /v1/subscriptions/{id}/enable, disable, rotate-secret: each changes one entry in the place of
// just what was read.
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/gateway/subscriptions/subscription_json.h"
#include "services/gateway/subscriptions/subscriptions_api.h"

enum { OVERLAP_DEFAULT_S = 86400, OVERLAP_MAX_S = 30 * 86400 };

typedef Stentor__V1__WebhookState State;
#define ACTIVE STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE
#define DISABLED STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_DISABLED

static const int64_t SECOND_US = 1000000;

// One change; lives in the request's arena.
typedef struct StateChange {
    SubscriptionChange whole; // first
    Str reason;
    int64_t overlap_s;
    uint8_t cause[SHA256_LEN]; // of the Idempotency-Key
    bool has_cause;
} StateChange;

static void answer_entry(ConfigChange *base, Str payload)
{
    ApiCall *call = base->call;
    const SubscriptionChange *change = (const SubscriptionChange *)base;
    Error err = {0};
    const WebhookSubscription *entry =
        webhook_subscription_read(str_from(call->tenant), payload, call->http->arena, &err);
    if (entry == NULL) {
        api_answer_failure(call, &err);
        return;
    }
    json_t *object = subscription_json(entry, call->http->received_at_us);
    if (change->secret[0] != '\0') {
        (void)json_object_set_new(object, "secret", json_string(change->secret));
    }
    if (change->replayed) {
        http_response_header(call->http, "Idempotent-Replayed", STR("true"));
    }
    api_answer_json(call, 200, object);
}

// In the state already: nothing is stored.
static bool make_state(
    const ConfigChange *base, Str there, State state, Str reason, const ProtobufCMessage **ret)
{
    ApiCall *call = base->call;
    WebhookSubscription *entry = subscription_stands(base, there);
    if (entry == NULL) {
        return false;
    }
    if (entry->state != state || !str_eq(str_from(entry->state_reason), reason)) {
        entry->state = state;
        entry->state_reason = pb_text(call->http->arena, reason);
        entry->state_changed_at_us = call->http->received_at_us;
        subscription_note_update(call, entry);
    }
    *ret = &entry->base;
    return true;
}

static bool make_enabled(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    return make_state(base, there, ACTIVE, STR_EMPTY, ret);
}

static bool make_disabled(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    return make_state(base, there, DISABLED, ((const StateChange *)base)->reason, ret);
}

// The newest secret was made for the same key.
static bool is_repeated(const StateChange *change, const WebhookSubscription *entry)
{
    return change->has_cause && entry->n_secrets > 0 &&
           str_eq(pb_bytes(entry->secrets[0]->cause), str_of(change->cause, sizeof change->cause));
}

static bool make_rotated(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    StateChange *change = (StateChange *)base;
    const SubscriptionsApi *api = base->call->ctx;
    Arena *arena = base->call->http->arena;
    WebhookSubscription *entry = subscription_stands(base, there);
    if (entry == NULL) {
        return false;
    }
    *ret = &entry->base;
    if (is_repeated(change, entry)) {
        return subscription_show_again(&change->whole, entry);
    }
    webhook_secret_add(
        entry, api->master, base->call->http->received_at_us, change->overlap_s * SECOND_US, arena,
        change->whole.secret);
    if (change->has_cause) {
        entry->secrets[0]->cause = pb_data(str_of(change->cause, sizeof change->cause));
    }
    subscription_note_update(base->call, entry);
    return true;
}

// ---- the calls ----

// NULL: answered.
static StateChange *new_change(ApiCall *call)
{
    if (!subscription_is_named(call)) {
        return NULL;
    }
    StateChange *change =
        (StateChange *)subscription_change_new(call, sizeof *change, call->params[0]);
    change->whole.base.answer = answer_entry;
    change->overlap_s = OVERLAP_DEFAULT_S;
    return change;
}

static void take_reason(ApiBody *body, StateChange *change)
{
    if (api_read_text(body, "reason", SUBSCRIPTION_REASON_MAX, &change->reason) &&
        str_has_control(change->reason)) {
        (void)api_body_fail(body, "reason", "must be one line");
    }
}

static void take_overlap(ApiBody *body, StateChange *change)
{
    (void)api_read_int(body, "overlap_s", 0, OVERLAP_MAX_S, &change->overlap_s);
}

static void take_nothing(ApiBody *body, StateChange *change)
{
    (void)body, (void)change;
}

// A body may be left out.
static void change_state(
    StateChange *change, void (*take)(ApiBody *body, StateChange *change),
    bool (*make)(ConfigChange *base, Str there, const ProtobufCMessage **ret))
{
    ApiBody body = {0};
    ApiCall *call = change->whole.base.call;
    Str text = call->http->body;
    bool ok = api_body_parse(&body, text.len > 0 ? text : STR("{}"), call->http->arena);
    if (ok) {
        take(&body, change);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    if (ok) {
        change->whole.base.make = make;
        config_change_run(&change->whole.base);
    }
}

static void enable(ApiCall *call)
{
    StateChange *change = new_change(call);
    if (change != NULL) {
        change_state(change, take_nothing, make_enabled);
    }
}

static void disable(ApiCall *call)
{
    StateChange *change = new_change(call);
    if (change != NULL) {
        change_state(change, take_reason, make_disabled);
    }
}

static void rotate(ApiCall *call)
{
    Str key;
    StateChange *change = new_change(call);
    if (change == NULL || !subscription_key_read(call, &key)) {
        return;
    }
    change->has_cause = key.len > 0;
    sha256(key, change->cause);
    change_state(change, take_overlap, make_rotated);
}

// clang-format off
const ApiRoute subscription_state_routes[] = {
    {"POST", "/v1/subscriptions/{}/enable", SCOPE_SUBSCRIPTIONS_WRITE, enable, NULL, true},
    {"POST", "/v1/subscriptions/{}/disable", SCOPE_SUBSCRIPTIONS_WRITE, disable, NULL, true},
    {"POST", "/v1/subscriptions/{}/rotate-secret", SCOPE_SUBSCRIPTIONS_WRITE, rotate, NULL, true},
};
// clang-format on
const size_t subscription_state_route_count =
    sizeof subscription_state_routes / sizeof subscription_state_routes[0];
