// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_api.h"
#include "services/gateway/vendors/channel_states.h"
#include "services/gateway/vendors/entry_change.h"

typedef Stentor__V1__ChannelHealth Health;

typedef struct Suspension {
    ConfigChange base; // first
    Health entry;
    Str reason;
    int64_t until_us;
} Suspension;

// ---- as JSON ----

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(at_us, at);
        (void)json_object_set_new(object, name, json_string(at));
    }
}

static json_t *tell(
    const ApiCall *call, const char *vendor, const char *owner, const Health *health)
{
    const VendorsApi *vendors = call->ctx;
    Channel channel = routing_vendor_channel(str_from(vendor));
    const CredentialEntry *account =
        routes_account(vendors->routes, str_from(owner), str_from(vendor), STR_EMPTY);
    ChannelStatus status =
        health == NULL ? CHANNEL_ACTIVE : channel_health_status(health, call->http->received_at_us);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s}", "channel", channel_name(channel), "vendor", vendor, "of",
        strcmp(owner, ROUTING_PLATFORM) == 0 ? "platform" : "tenant", "status",
        channel_status_name(status));
    if (account != NULL && (call->operates || strcmp(account->tenant, ROUTING_PLATFORM) != 0)) {
        (void)json_object_set_new(object, "credential", json_string(account->name));
    }
    bool carries = account != NULL || routing_is_own(str_from(vendor));
    (void)json_object_set_new(
        object, "usable", json_boolean(carries && status <= CHANNEL_DEGRADED));
    if (health != NULL && status != CHANNEL_ACTIVE) {
        set_time(
            object, "since",
            status == CHANNEL_DOWN ? health->down_since_us : health->changed_at_us);
        set_time(object, "until", health->until_us);
        (void)json_object_set_new(object, "reason", json_string(health->reason));
        (void)json_object_set_new(object, "noted_by", json_string(health->noted_by));
    }
    return object;
}

static const Health *health_of(const ApiCall *call, const char *owner, const char *vendor)
{
    const VendorsApi *vendors = call->ctx;
    char key[CHANNEL_HEALTH_KEY_SIZE];
    Str name = str_from(vendor);
    return channel_health_key(key, routing_vendor_channel(name), name)
               ? channel_states_get(
                     vendors->health, str_from(owner), str_from(key), call->http->arena)
               : NULL;
}

// ---- reading ----

static void add_vendor(const ApiCall *call, json_t *list, const char *vendor)
{
    const VendorsApi *vendors = call->ctx;
    bool platform = strcmp(call->tenant, ROUTING_PLATFORM) == 0;
    const CredentialEntry *own =
        platform
            ? NULL
            : routes_account(vendors->routes, str_from(call->tenant), str_from(vendor), STR_EMPTY);
    const Health *state = platform ? NULL : health_of(call, call->tenant, vendor);
    if ((own != NULL && strcmp(own->tenant, call->tenant) == 0) || state != NULL) {
        (void)json_array_append_new(list, tell(call, vendor, call->tenant, state));
    }
    (void)json_array_append_new(
        list, tell(call, vendor, ROUTING_PLATFORM, health_of(call, ROUTING_PLATFORM, vendor)));
}

static bool is_listed(const json_t *list, const char *vendor)
{
    size_t i = 0;
    const json_t *row = NULL;
    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "vendor")), vendor) == 0) {
            return true;
        }
    }
    return false;
}

// Vendors by definition that the owner has a credential for.
static void add_defined(const ApiCall *call, json_t *list, const char *owner)
{
    const VendorsApi *vendors = call->ctx;
    size_t count = 0;
    const CredentialEntry **all =
        routes_credentials(vendors->routes, str_from(owner), call->http->arena, &count);
    for (size_t i = 0; i < count; i++) {
        if (definition_channel(str_from(all[i]->vendor)) != CHANNEL_NONE &&
            !is_listed(list, all[i]->vendor)) {
            add_vendor(call, list, all[i]->vendor);
        }
    }
}

static void get_channels(ApiCall *call)
{
    json_t *list = json_array();
    add_vendor(call, list, ROUTING_SMTP);
    add_vendor(call, list, ROUTING_INAPP);
    for (size_t i = 0; vendor_at(i) != NULL; i++) {
        add_vendor(call, list, vendor_at(i)->name);
    }
    add_defined(call, list, call->tenant);
    add_defined(call, list, ROUTING_PLATFORM);
    api_answer_json(call, 200, json_pack("{s:o, s:n}", "data", list, "next"));
}

// ---- suspending ----

static bool take_old(Suspension *change, Str there)
{
    ApiCall *call = change->base.call;
    Arena *arena = call->http->arena;
    const Health *old = there.len == 0
                            ? NULL
                            : (const Health *)event_unpack(
                                  &stentor__v1__channel_health__descriptor, there, arena, NULL);
    if (old != NULL) {
        change->entry = *old;
    } else {
        stentor__v1__channel_health__init(&change->entry);
        change->entry.tenant = call->tenant;
        change->entry.vendor = arena_cstr(arena, call->params[0]);
        change->entry.channel = (Stentor__V1__Channel)routing_vendor_channel(call->params[0]);
    }
    return old != NULL;
}

static void note_change(Suspension *change)
{
    ApiCall *call = change->base.call;
    change->entry.changed_at_us = call->http->received_at_us;
    change->entry.noted_by = arena_cstr(call->http->arena, call->key_id);
}

static bool make_suspended(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    Suspension *change = (Suspension *)base;
    (void)take_old(change, there);
    change->entry.status = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED;
    change->entry.reason = arena_cstr(base->call->http->arena, change->reason);
    change->entry.until_us = change->until_us;
    note_change(change);
    *ret = &change->entry.base;
    return true;
}

// What a dispatcher had found before the suspension holds again, until one finds otherwise.
static bool make_resumed(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    Suspension *change = (Suspension *)base;
    bool stands = take_old(change, there);
    *ret = &change->entry.base;
    if (!stands || change->entry.status != STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED) {
        metric_add(base->call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            base->call->http, 409, "channel-not-suspended", "The channel is not suspended", NULL,
            "nothing is to be resumed; 'stentor channel list' says how it stands");
        return false;
    }
    change->entry.status = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_UNSPECIFIED;
    change->entry.until_us = 0;
    change->entry.reason = pb_borrow("");
    note_change(change);
    return true;
}

static void answer_state(ConfigChange *base, Str payload)
{
    const Health *health = (const Health *)event_unpack(
        &stentor__v1__channel_health__descriptor, payload, base->call->http->arena, NULL);
    if (health != NULL) {
        api_answer_json(
            base->call, 200, tell(base->call, health->vendor, base->call->tenant, health));
    }
}

// NULL: answered.
static Suspension *new_change(ApiCall *call)
{
    char key[CHANNEL_HEALTH_KEY_SIZE];
    Str vendor = call->params[0];
    if (!channel_health_key(key, routing_vendor_channel(vendor), vendor)) {
        Str shown = str_slice(vendor, 0, 32);
        api_answer_missing(
            call, arena_printf(call->http->arena, "vendor '" STR_FMT "'", STR_ARG(shown)));
        return NULL;
    }
    Suspension *change =
        (Suspension *)entry_change_new(call, sizeof *change, CHANNEL_HEALTH_KIND, str_from(key));
    change->base.answer = answer_state;
    return change;
}

static bool read_body(Suspension *change)
{
    ApiBody body = {0};
    ApiCall *call = change->base.call;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        (void)api_read_text(&body, "reason", CHANNEL_HEALTH_REASON_MAX, &change->reason);
        (void)api_read_time(&body, "until", &change->until_us);
        if (str_trim(change->reason).len == 0 || str_has_control(change->reason)) {
            (void)api_body_fail(
                &body, "reason", "required: one line for those who ask why mails wait");
        }
        if (change->until_us != 0 && change->until_us <= call->http->received_at_us) {
            (void)api_body_fail(
                &body, "until", "is over already; leave it out to suspend until resumed");
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void suspend_channel(ApiCall *call)
{
    Suspension *change = new_change(call);
    if (change != NULL && read_body(change)) {
        change->base.make = make_suspended;
        config_change_run(&change->base);
    }
}

static void resume_channel(ApiCall *call)
{
    Suspension *change = new_change(call);
    if (change != NULL) {
        change->base.make = make_resumed;
        config_change_run(&change->base);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/channels", SCOPE_TENANT_READ, get_channels, NULL, false},
    {"POST", "/v1/channels/{}/suspend", SCOPE_TENANTS_OPERATE, suspend_channel, NULL, true},
    {"POST", "/v1/channels/{}/resume", SCOPE_TENANTS_OPERATE, resume_channel, NULL, true},
};

void channels_api_add(Api *api, VendorsApi *vendors)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], vendors);
}
