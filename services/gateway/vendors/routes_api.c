// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "services/gateway/vendors/entry_change.h"

typedef struct RouteChange {
    ConfigChange base; // first
    RouteEntry entry;
} RouteChange;

// ---- as JSON ----

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static json_t *tell_vendors(const RouteEntry *route)
{
    json_t *list = json_array();
    for (size_t i = 0; i < route->n_vendors; i++) {
        const Stentor__V1__RouteVendor *one = route->vendors[i];
        json_t *object = json_pack("{s:s}", "vendor", one->vendor);
        set_text(object, "credential", one->credential);
        (void)json_object_set_new(
            object, "weight", json_integer(one->weight == 0 ? 1 : one->weight));
        (void)json_object_set_new(object, "step", json_integer(one->step));
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *tell(const RouteEntry *route)
{
    json_t *on = json_array();
    for (size_t i = 0; i < route->n_fallback_on; i++) {
        (void)json_array_append_new(on, json_string(route->fallback_on[i]));
    }
    Channel channel = route->channel == STENTOR__V1__CHANNEL__CHANNEL_UNSPECIFIED
                          ? CHANNEL_EMAIL
                          : (Channel)route->channel;
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:s}", "key", route->key, "of",
        strcmp(route->tenant, ROUTING_PLATFORM) == 0 ? "platform" : "tenant", "position",
        (json_int_t)route->position, "channel", channel_name(channel));
    set_text(object, "category", category_name((Category)route->category));
    set_text(object, "domain", route->domain);
    set_text(object, "country", route->country);
    (void)json_object_set_new(object, "vendors", tell_vendors(route));
    if (route->n_fallback_on > 0) {
        (void)json_object_set(object, "fallback_on", on);
    }
    json_decref(on);
    set_text(object, "unknown", route->unknown);
    (void)json_object_set_new(
        object, "max_vendors",
        json_integer(route->max_vendors == 0 ? ROUTE_VENDORS_DEFAULT : route->max_vendors));
    if (route->settle_ms > 0) {
        (void)json_object_set_new(object, "settle_ms", json_integer(route->settle_ms));
    }
    (void)json_object_set_new(object, "enabled", json_boolean(!route->disabled));
    if (route->updated_at_us > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(route->updated_at_us, at);
        set_text(object, "updated_at", at);
        set_text(object, "updated_by", route->updated_by);
    }
    return object;
}

// What is stored and does nothing yet.
static void add_warnings(const VendorsApi *vendors, const RouteEntry *route, json_t *object)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < route->n_vendors; i++) {
        const Stentor__V1__RouteVendor *one = route->vendors[i];
        const CredentialEntry *account = routes_account(
            vendors->routes, str_from(route->tenant), str_from(one->vendor),
            str_from(one->credential));
        if (!routing_is_own(str_from(one->vendor)) && account == NULL) {
            (void)json_array_append_new(
                warnings,
                json_sprintf(
                    "vendors[%zu]: %s has no active credential%s%s; it is left out until there is "
                    "one",
                    i, one->vendor, one->credential[0] != '\0' ? " " : "", one->credential));
        }
    }
    if (json_array_size(warnings) > 0) {
        (void)json_object_set(object, "warnings", warnings);
    }
    json_decref(warnings);
}

// ---- reading ----

static bool add_list(
    json_t *list, ApiCall *call, const char *owner, const Page *page, Str *ret_last)
{
    const VendorsApi *vendors = call->ctx;
    Arena *arena = call->http->arena;
    size_t count = 0;
    bool own = strcmp(owner, call->tenant) == 0;
    const RouteEntry **all = routes_list(vendors->routes, str_from(owner), arena, &count);
    for (size_t i = 0; i < count; i++) {
        // The tenant's own, then the platform's, each in the order in which they are asked.
        Str position = str_from(arena_printf(
            arena, "%d/%010" PRIu32 "/%s", own ? 0 : 1, all[i]->position, all[i]->key));
        if (str_cmp(position, page->after) <= 0) {
            continue;
        }
        if (json_array_size(list) == page->limit) {
            return false;
        }
        (void)json_array_append_new(list, tell(all[i]));
        *ret_last = position;
    }
    return true;
}

static void get_routes(ApiCall *call)
{
    Page page;
    Str last = STR_EMPTY;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    json_t *list = json_array();
    bool platform = strcmp(call->tenant, ROUTING_PLATFORM) == 0;
    bool all = add_list(list, call, call->tenant, &page, &last) &&
               (platform || add_list(list, call, ROUTING_PLATFORM, &page, &last));
    page_answer(call, list, all ? STR_EMPTY : last);
}

static void answer_unknown(ApiCall *call)
{
    Str key = str_slice(call->params[0], 0, ROUTE_NAME_MAX);
    api_answer_missing(call, arena_printf(call->http->arena, "route '" STR_FMT "'", STR_ARG(key)));
}

static void get_route(ApiCall *call)
{
    const VendorsApi *vendors = call->ctx;
    const RouteEntry *route = routes_get(vendors->routes, str_from(call->tenant), call->params[0]);
    if (route == NULL) {
        route = routes_get(vendors->routes, STR(ROUTING_PLATFORM), call->params[0]);
    }
    if (route == NULL) {
        answer_unknown(call);
        return;
    }
    json_t *object = tell(route);
    add_warnings(vendors, route, object);
    api_answer_json(call, 200, object);
}

// ---- changing ----

static const char *at_of(const ApiBody *body, size_t i)
{
    return arena_printf(body->arena, "vendors[%zu].", i);
}

static void take_vendor(ApiBody *outer, json_t *item, size_t i, RouteEntry *entry)
{
    int64_t weight = 1, step = 0;
    Str vendor = STR_EMPTY, credential = STR_EMPTY;
    ApiBody body = api_body_inside(outer, item, at_of(outer, i));
    (void)api_read_text(&body, "vendor", 64, &vendor);
    (void)api_read_text(&body, "credential", 64, &credential);
    (void)api_read_int(&body, "weight", 1, 1000, &weight);
    (void)api_read_int(&body, "step", 0, ROUTE_VENDORS_MAX - 1, &step);
    (void)api_body_inside_end(outer, &body);
    Stentor__V1__RouteVendor *one = arena_alloc(outer->arena, sizeof *one);
    stentor__v1__route_vendor__init(one);
    one->vendor = pb_text(outer->arena, vendor);
    one->credential = pb_text(outer->arena, credential);
    one->weight = weight == 1 ? 0 : (uint32_t)weight;
    one->step = (uint32_t)step;
    entry->vendors[entry->n_vendors++] = one;
}

static void take_vendors(ApiBody *body, RouteEntry *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "vendors", ROUTE_VENDORS_MAX, &list) || list == NULL) {
        return;
    }
    entry->vendors = arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->vendors);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        if (!json_is_object(item)) {
            (void)api_body_fail(
                body, arena_printf(body->arena, "vendors[%zu]", i),
                "an object such as {\"vendor\": \"smtp\", \"step\": 1}");
            return;
        }
        take_vendor(body, item, i, entry);
    }
}

static void take_fallback(ApiBody *body, RouteEntry *entry)
{
    json_t *list = NULL;
    if (!api_read_array(body, "fallback_on", 6, &list) || list == NULL) {
        return;
    }
    entry->fallback_on =
        arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->fallback_on);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL) {
            (void)api_body_fail(body, "fallback_on", "texts such as \"unsent\"");
            return;
        }
        entry->fallback_on[entry->n_fallback_on++] = arena_cstr(body->arena, str_from(name));
    }
}

static void take_names(ApiBody *body, RouteEntry *entry)
{
    Str channel_text = STR_EMPTY, category_text = STR_EMPTY;
    Channel channel = CHANNEL_EMAIL;
    Category category = CATEGORY_NONE;
    (void)api_read_text(body, "channel", 32, &channel_text);
    (void)api_read_text(body, "category", 32, &category_text);
    if (channel_text.len > 0 && !channel_from_name(channel_text, &channel)) {
        (void)api_body_fail(body, "channel", "not a channel: " CHANNEL_NAMES);
    }
    if (category_text.len > 0 && !category_from_name(category_text, &category)) {
        (void)api_body_fail(body, "category", "not a category such as 'security'");
    }
    entry->channel = (Stentor__V1__Channel)channel;
    entry->category = (Stentor__V1__Category)category;
}

static void take_fields(ApiBody *body, RouteEntry *entry)
{
    int64_t position = 0, max_vendors = 0, settle_ms = 0;
    bool enabled = true;
    Str domain = STR_EMPTY, country = STR_EMPTY, unknown = STR_EMPTY;
    take_names(body, entry);
    take_vendors(body, entry);
    take_fallback(body, entry);
    (void)api_read_int(body, "position", 0, 1000000, &position);
    (void)api_read_text(body, "domain", 255, &domain);
    (void)api_read_text(body, "country", 8, &country);
    (void)api_read_text(body, "unknown", 32, &unknown);
    (void)api_read_int(body, "max_vendors", 1, ROUTE_VENDORS_MAX, &max_vendors);
    (void)api_read_int(body, "settle_ms", 1, 3600000, &settle_ms);
    (void)api_read_bool(body, "enabled", &enabled);
    entry->position = (uint32_t)position;
    entry->domain = pb_text(body->arena, domain);
    entry->country = pb_text(body->arena, country);
    entry->unknown = pb_text(body->arena, unknown);
    entry->max_vendors = (uint32_t)max_vendors;
    entry->settle_ms = (uint32_t)settle_ms;
    entry->disabled = !enabled;
}

static bool read_entry(RouteChange *change)
{
    ApiBody body = {0};
    Error err = {0};
    ApiCall *call = change->base.call;
    RouteEntry *entry = &change->entry;
    Arena *arena = call->http->arena;
    stentor__v1__route__init(entry);
    entry->tenant = call->tenant;
    entry->key = arena_cstr(arena, change->base.key);
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(arena, call->key_id);
    bool ok = api_body_parse(&body, call->http->body, arena);
    if (ok) {
        take_fields(&body, entry);
        if (api_body_end(&body) && !route_check(entry, &err)) {
            entry_fail(&body, &err);
        }
        ok = api_body_good(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// But for who put it and when, which stay when nothing else differs.
static bool make(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    RouteChange *change = (RouteChange *)base;
    Arena *arena = base->call->http->arena;
    const RouteEntry *old =
        there.len == 0
            ? NULL
            : (const RouteEntry *)event_unpack(&stentor__v1__route__descriptor, there, arena, NULL);
    *ret = &change->entry.base;
    if (old != NULL) {
        RouteEntry same = change->entry;
        same.updated_at_us = old->updated_at_us;
        same.updated_by = old->updated_by;
        Str packed = STR_EMPTY;
        if (event_pack(&same.base, arena, &packed, NULL) && str_eq(packed, there)) {
            change->entry = same;
        }
    }
    return true;
}

static void answer_put(ConfigChange *base, Str payload)
{
    (void)payload;
    RouteChange *change = (RouteChange *)base;
    json_t *object = tell(&change->entry);
    add_warnings(base->call->ctx, &change->entry, object);
    api_answer_json(base->call, 200, object);
}

static bool refuse_one_more(ApiCall *call)
{
    const VendorsApi *vendors = call->ctx;
    size_t count = 0;
    (void)routes_list(vendors->routes, str_from(call->tenant), call->http->arena, &count);
    if (count < ROUTES_MAX ||
        routes_get(vendors->routes, str_from(call->tenant), call->params[0]) != NULL) {
        return false;
    }
    (void)api_refuse_field(call, "key", "the tenant has %d routes already; delete one", ROUTES_MAX);
    return true;
}

static void put_route(ApiCall *call)
{
    RouteChange *change =
        (RouteChange *)entry_change_new(call, sizeof *change, "route", call->params[0]);
    change->base.make = make;
    change->base.answer = answer_put;
    if (read_entry(change) && !refuse_one_more(call)) {
        config_change_run(&change->base);
    }
}

static void delete_route(ApiCall *call)
{
    ConfigChange *change = entry_change_new(call, sizeof *change, "route", call->params[0]);
    if (routing_is_name(change->key, ROUTE_NAME_MAX)) {
        config_change_remove(change, answer_unknown);
    } else {
        answer_unknown(call);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/routes", SCOPE_TENANT_READ, get_routes, "limit cursor", false},
    {"GET", "/v1/routes/{}", SCOPE_TENANT_READ, get_route, NULL, false},
    {"PUT", "/v1/routes/{}", SCOPE_TENANTS_OPERATE, put_route, NULL, true},
    {"DELETE", "/v1/routes/{}", SCOPE_TENANTS_OPERATE, delete_route, NULL, true},
};

void routes_api_add(Api *api, VendorsApi *vendors)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], vendors);
}
