// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/subscriptions/subscription_json.h"

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/model/enums.h"
#include "common/webhooks/webhook_event.h"

// ---- as JSON ----

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(at_us, at);
        (void)json_object_set_new(object, name, json_string(at));
    }
}

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(text));
    }
}

const char *subscription_state_name(const WebhookSubscription *entry)
{
    switch (entry->state) {
    case STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_DISABLED:
        return "disabled";
    case STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_FAILING:
        return "failing";
    case STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_UNSPECIFIED:
    case STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE:
    case _STENTOR__V1__WEBHOOK_STATE_IS_INT_SIZE:
        break;
    }
    return "active";
}

static json_t *show_events(const WebhookSubscription *entry)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entry->n_events; i++) {
        (void)json_array_append_new(list, json_string(entry->events[i]));
    }
    return list;
}

static json_t *show_channels(const WebhookSubscription *entry)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entry->n_channels; i++) {
        (void)json_array_append_new(list, json_string(channel_name((Channel)entry->channels[i])));
    }
    return list;
}

static json_t *show_categories(const WebhookSubscription *entry)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entry->n_categories; i++) {
        (void)json_array_append_new(
            list, json_string(category_name((Category)entry->categories[i])));
    }
    return list;
}

static json_t *show_secrets(const WebhookSubscription *entry, int64_t now_us)
{
    json_t *list = json_array();
    for (size_t i = 0; i < entry->n_secrets; i++) {
        if (webhook_secret_signs(entry->secrets[i], now_us)) {
            json_t *one = json_object();
            set_time(one, "created_at", entry->secrets[i]->created_at_us);
            set_time(one, "not_after", entry->secrets[i]->not_after_us);
            (void)json_array_append_new(list, one);
        }
    }
    return list;
}

static json_int_t or_default(uint32_t value, int otherwise)
{
    return value > 0 ? (json_int_t)value : otherwise;
}

json_t *subscription_json(const WebhookSubscription *entry, int64_t now_us)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:b, s:o}", "id", entry->id, "name",
        entry->name, "target_url", entry->target_url, "state", subscription_state_name(entry),
        "events", show_events(entry), "channels", show_channels(entry), "categories",
        show_categories(entry), "rate_per_s", or_default(entry->rate_per_s, WEBHOOK_RATE_DEFAULT),
        "in_flight", or_default(entry->in_flight, WEBHOOK_IN_FLIGHT_DEFAULT), "disable_after",
        or_default(entry->disable_after, WEBHOOK_DISABLE_AFTER_DEFAULT), "in_order",
        entry->in_order, "secrets", show_secrets(entry, now_us));
    set_text(object, "state_reason", entry->state_reason);
    set_time(object, "state_changed_at", entry->state_changed_at_us);
    set_time(object, "created_at", entry->created_at_us);
    set_text(object, "created_by", entry->created_by);
    set_time(object, "updated_at", entry->updated_at_us);
    set_text(object, "updated_by", entry->updated_by);
    return object;
}

// ---- what a caller may set ----

static void take_name(ApiBody *body, WebhookSubscription *entry)
{
    Str name = STR_EMPTY;
    if (!api_read_text(body, "name", SUBSCRIPTION_NAME_MAX, &name)) {
        return;
    }
    name = str_trim(name);
    if (name.len == 0 || str_has_control(name)) {
        (void)api_body_fail(body, "name", "required: one line for those who look after it");
    }
    entry->name = pb_text(body->arena, name);
}

static void take_url(
    ApiBody *body, const HttpGuard *guard, WebhookSubscription *entry, GuardedUrl *ret_url)
{
    Str text = STR_EMPTY;
    Error err = {0};
    if (!api_read_text(body, "target_url", SUBSCRIPTION_URL_MAX, &text)) {
        return;
    }
    entry->target_url = pb_text(body->arena, text);
    if (text.len == 0) {
        (void)api_body_fail(
            body, "target_url", "required: an address such as 'https://hooks.example.com/stentor'");
    } else if (!guard_url(guard, entry->target_url, ret_url, &err)) {
        (void)api_body_fail(body, "target_url", "%s", err.text);
    }
}

// Item i as a text; empty: it is none, and the body has a fault.
static Str text_of(ApiBody *body, const char *name, const json_t *list, size_t i)
{
    const json_t *item = json_array_get(list, i);
    if (!json_is_string(item) || json_string_length(item) == 0) {
        (void)api_body_fail(
            body, arena_printf(body->arena, "%s[%zu]", name, i), "must be a text, not empty");
        return STR_EMPTY;
    }
    return str_of(json_string_value(item), json_string_length(item));
}

static void refuse_item(ApiBody *body, const char *name, size_t i, Str text, const char *known)
{
    Str shown = str_slice(text, 0, 60);
    (void)api_body_fail(
        body, arena_printf(body->arena, "%s[%zu]", name, i), "'" STR_FMT "' is not %s",
        STR_ARG(shown), known);
}

static void take_events(ApiBody *body, WebhookSubscription *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "events", WEBHOOK_EVENTS_MAX, &list) || list == NULL) {
        return;
    }
    entry->events = arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->events);
    for (size_t i = 0; i < json_array_size(list); i++) {
        Str text = text_of(body, "events", list, i);
        if (text.len > 0 && !webhook_is_filter(text)) {
            refuse_item(
                body, "events", i, text,
                "an event: 'notification.*', or one such as 'notification.delivered'");
        }
        entry->events[entry->n_events++] = pb_text(body->arena, text);
    }
}

static void take_channels(ApiBody *body, WebhookSubscription *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "channels", CHANNEL_COUNT, &list) || list == NULL) {
        return;
    }
    entry->channels = arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->channels);
    for (size_t i = 0; i < json_array_size(list); i++) {
        Channel channel = CHANNEL_NONE;
        Str text = text_of(body, "channels", list, i);
        if (text.len > 0 && !channel_from_name(text, &channel)) {
            refuse_item(body, "channels", i, text, "a channel: " CHANNEL_NAMES);
        }
        entry->channels[entry->n_channels++] = (Stentor__V1__Channel)channel;
    }
}

static void take_categories(ApiBody *body, WebhookSubscription *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "categories", CATEGORY_COUNT, &list) || list == NULL) {
        return;
    }
    entry->categories =
        arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->categories);
    for (size_t i = 0; i < json_array_size(list); i++) {
        Category category = CATEGORY_NONE;
        Str text = text_of(body, "categories", list, i);
        if (text.len > 0 && !category_from_name(text, &category)) {
            refuse_item(body, "categories", i, text, "a category such as 'security'");
        }
        entry->categories[entry->n_categories++] = (Stentor__V1__Category)category;
    }
}

bool subscription_take(
    ApiBody *body, const HttpGuard *guard, WebhookSubscription *entry, GuardedUrl *ret_url)
{
    int64_t rate = 0, in_flight = 0, disable_after = 0;
    bool in_order = false;
    take_name(body, entry);
    take_url(body, guard, entry, ret_url);
    take_events(body, entry);
    take_channels(body, entry);
    take_categories(body, entry);
    (void)api_read_int(body, "rate_per_s", 1, SUBSCRIPTION_RATE_MAX, &rate);
    (void)api_read_int(body, "in_flight", 1, SUBSCRIPTION_IN_FLIGHT_MAX, &in_flight);
    (void)api_read_int(body, "disable_after", 1, SUBSCRIPTION_DISABLE_AFTER_MAX, &disable_after);
    (void)api_read_bool(body, "in_order", &in_order);
    entry->rate_per_s = (uint32_t)rate;
    entry->in_flight = (uint32_t)in_flight;
    entry->disable_after = (uint32_t)disable_after;
    entry->in_order = in_order;
    return api_body_end(body);
}
