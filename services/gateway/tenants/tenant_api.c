// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/tenant_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/api/tenant_json.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/model/address.h"
#include "common/model/sender_domain.h"
#include "services/gateway/recipients/recipients_write.h"
#include "services/gateway/tenants/tenant_fields.h"
#include "services/gateway/tenants/tenant_rules.h"

struct TenantApi {
    Bus *bus;
    Map *entries; // tenant -> Entry
};

typedef struct Entry {
    uint64_t sequence; // in CONFIG
    size_t len;
    char bytes[]; // a packed stentor.v1.Tenant
} Entry;

typedef enum Change { CHANGE_PUT, CHANGE_PATCH, CHANGE_ADD_DOMAIN, CHANGE_REMOVE_DOMAIN } Change;

typedef struct Call {
    TenantApi *api;
    ApiCall *base;
    Change change;
    Str domain;    // to add or remove
    json_t *patch; // the arena's
    Stentor__V1__Tenant wanted;
    unsigned named; // of the operator's fields
    Precondition needs;
    char subject[SUBJECT_SIZE];
} Call;

TenantApi *tenant_api_new(Bus *bus)
{
    TenantApi *api = xcalloc(1, sizeof *api);
    api->bus = bus;
    api->entries = map_new(free);
    return api;
}

void tenant_api_free(TenantApi *api)
{
    if (api != NULL) {
        map_free(api->entries);
        free(api);
    }
}

void tenant_api_changed(TenantApi *api, Str tenant, Str payload, uint64_t sequence)
{
    if (payload.len == 0) {
        (void)map_remove(api->entries, tenant);
        return;
    }
    Entry *entry = xmalloc(sizeof *entry + payload.len);
    entry->sequence = sequence;
    entry->len = payload.len;
    memcpy(entry->bytes, payload.ptr, payload.len);
    map_put(api->entries, tenant, entry);
}

static void answer_settings(ApiCall *call, Str packed, uint64_t sequence)
{
    Error err = {0};
    const Stentor__V1__Tenant *tenant = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, packed, call->http->arena, &err);
    if (tenant == NULL) {
        api_answer_failure(call, &err);
        return;
    }
    Buf out;
    buf_init(&out, TENANT_JSON_MAX);
    tenant_json_print(tenant, &out);
    precondition_tag(call, sequence);
    http_respond(call->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void get_tenant(ApiCall *call)
{
    const TenantApi *api = call->ctx;
    const Entry *entry = map_get(api->entries, str_from(call->tenant));
    if (entry == NULL) {
        api_answer_missing(call, "settings of this tenant yet");
        return;
    }
    answer_settings(
        call, arena_str(call->http->arena, str_of(entry->bytes, entry->len)), entry->sequence);
}

// ---- the list ----

typedef struct Listing {
    const TenantApi *api;
    Str after;
    Str status; // empty: any
    Arena *arena;
    Str *names; // the smallest behind `after`, in order
    size_t count;
    size_t max;
} Listing;

static const Stentor__V1__Tenant *unpack(const Listing *list, Str tenant)
{
    const Entry *entry = map_get(list->api->entries, tenant);
    return (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, str_of(entry->bytes, entry->len), list->arena, NULL);
}

static void keep_smallest(Listing *list, Str name)
{
    if (list->count == list->max && str_cmp(name, list->names[list->count - 1]) >= 0) {
        return;
    }
    size_t at = list->count < list->max ? list->count++ : list->count - 1;
    for (; at > 0 && str_cmp(list->names[at - 1], name) > 0; at--) {
        list->names[at] = list->names[at - 1];
    }
    list->names[at] = name;
}

static bool is_listed(const Listing *list, Str name)
{
    if (str_cmp(name, list->after) <= 0) {
        return false;
    }
    const Stentor__V1__Tenant *tenant = list->status.len == 0 ? NULL : unpack(list, name);
    return list->status.len == 0 ||
           (tenant != NULL && str_eq(list->status, str_from(tenant_status_name(tenant))));
}

static void put_text(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static json_t *row_of(const Stentor__V1__Tenant *tenant)
{
    char at[CLOCK_RFC3339_SIZE];
    json_t *row = json_pack("{s:s}", "tenant", tenant->tenant);
    put_text(row, "name", tenant->name);
    put_text(row, "status", tenant_status_name(tenant));
    put_text(row, "region", tenant->region);
    if (tenant->updated_at_us > 0) {
        clock_format(tenant->updated_at_us, at);
        put_text(row, "updated_at", at);
    }
    return row;
}

static bool is_status(Str text)
{
    Stentor__V1__Tenant probe;
    stentor__v1__tenant__init(&probe);
    return tenant_status_set(&probe, text);
}

static void list_tenants(ApiCall *call)
{
    Page page;
    Str status = http_query(call->http, "status");
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    if (status.len > 0 && !is_status(status)) {
        api_answer_parameter(call, "status", "expected active, suspended or deleting");
        return;
    }
    Arena *arena = call->http->arena;
    Listing list = {call->ctx, page.after, status, arena, .max = page.limit + 1};
    list.names = arena_array(arena, list.max, sizeof *list.names);
    Str name = STR_EMPTY;
    void *entry = NULL;
    for (size_t cursor = 0; map_next(list.api->entries, &cursor, &name, &entry);) {
        if (is_listed(&list, name)) {
            keep_smallest(&list, name);
        }
    }
    bool more = list.count > page.limit;
    size_t shown = more ? page.limit : list.count;
    json_t *data = json_array();
    for (size_t i = 0; i < shown; i++) {
        const Stentor__V1__Tenant *tenant = unpack(&list, list.names[i]);
        if (tenant != NULL) {
            (void)json_array_append_new(data, row_of(tenant));
        }
    }
    page_answer(call, data, more ? list.names[shown - 1] : STR_EMPTY);
}

// ---- changes ----

static void on_stored(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    Call *call = ctx;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        precondition_answer_failed(call->base, sequence); // another call was first
        return;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    // The mirror brings it in a moment; until then this process's GET must not show the old one.
    tenant_api_changed(call->api, str_from(call->base->tenant), payload, sequence);
    answer_settings(call->base, payload, sequence);
}

static void store(Call *call, uint64_t replaces)
{
    config_write(
        &(ConfigWrite){
            .bus = call->api->bus,
            .arena = call->base->http->arena,
            .kind = "tenant",
            .tenant = str_from(call->base->tenant),
            .key = STR("self"),
            .message = &call->wanted.base,
            .replaces = replaces,
        },
        on_stored, call);
}

static void refuse(Call *call, TenantVerdict verdict, const FieldError *err)
{
    if (verdict == TENANT_UNVERIFIED) {
        api_answer_field(call->base, err);
        return;
    }
    metric_add(call->base->metrics->refused[REFUSED_SCOPE], 1);
    http_problem(
        call->base->http, 403, "operator-field", "Only the operator changes this field", err->field,
        "%s", err->text);
}

// The settings as the patch makes them of those that are stored. false: answered.
static bool read_merged(Call *call, const Stentor__V1__Tenant *stored)
{
    ApiBody body = {.arena = call->base->http->arena, .at = ""};
    body.root = tenant_json_merge(stored, call->patch);
    (void)tenant_json_read(&body, &call->wanted, &call->named);
    bool ok = api_body_end(&body);
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    call->named = TENANT_OPERATOR_FIELDS; // what is not there any more was taken away
    return ok;
}

static bool sets_sender(const Call *call, const Stentor__V1__Tenant *stored)
{
    if (call->change == CHANGE_PATCH) {
        return json_object_get(call->patch, "sender_address") != NULL;
    }
    return stored == NULL || strcmp(stored->sender_address, call->wanted.sender_address) != 0;
}

// false: answered.
static bool decide(Call *call, const Stentor__V1__Tenant *stored)
{
    FieldError wrong = {.field = ""};
    Arena *arena = call->base->http->arena;
    Stentor__V1__Tenant *wanted = &call->wanted;
    if (call->change == CHANGE_PATCH && !read_merged(call, stored)) {
        return false;
    }
    TenantVerdict verdict = TENANT_UNVERIFIED;
    if (call->change == CHANGE_ADD_DOMAIN || call->change == CHANGE_REMOVE_DOMAIN) {
        bool adds = call->change == CHANGE_ADD_DOMAIN;
        bool ok = adds ? tenant_rules_add_domain(stored, call->domain, arena, wanted, &wrong)
                       : tenant_rules_remove_domain(stored, call->domain, arena, wanted, &wrong);
        verdict = ok ? TENANT_FINE : verdict;
    } else if (!call->base->operates) {
        verdict = tenant_rules_apply(stored, call->named, wanted, &wrong);
    } else if (tenant_rules_operate(
                   stored, call->named, sets_sender(call, stored), arena, wanted, &wrong)) {
        verdict = TENANT_FINE;
    }
    if (verdict != TENANT_FINE) {
        refuse(call, verdict, &wrong);
    }
    return verdict == TENANT_FINE;
}

// A suspension may be in the log and not yet be known here: a put must not lift it.
static void on_stored_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Call *call = ctx;
    Error own = {0};
    Arena *arena = call->base->http->arena;
    const Stentor__V1__Tenant *stored = NULL;
    if (err == NULL && payload.len > 0) {
        stored = (const Stentor__V1__Tenant *)event_unpack(
            &stentor__v1__tenant__descriptor, payload, arena, &own);
        err = stored == NULL ? &own : NULL;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    if (stored != NULL && stored->suspended && !call->base->operates) {
        bool deleting = stored->status == STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
        api_answer_standing(call->base, deleting ? STANDING_DELETING : STANDING_SUSPENDED);
        return;
    }
    uint64_t there = stored == NULL ? 0 : sequence;
    if (!precondition_holds(&call->needs, there)) {
        precondition_answer_failed(call->base, there);
        return;
    }
    if (!decide(call, stored)) {
        return;
    }
    tenant_fields_stamp(stored, clock_now_us(), arena, &call->wanted);
    call->wanted.updated_at_us = stored == NULL ? 0 : stored->updated_at_us;
    if (config_is_same(&call->wanted.base, payload, arena)) {
        answer_settings(call->base, payload, sequence);
        return;
    }
    call->wanted.updated_at_us = clock_now_us();
    store(call, sequence);
}

static void free_patch(void *patch)
{
    json_decref(patch);
}

// A caller that changes one of status and suspended in what a GET showed puts the other one back
// as it was: the changed one counts.
static void drop_unchanged(const Call *call, json_t *root)
{
    const Entry *entry = map_get(call->api->entries, str_from(call->base->tenant));
    const char *status = json_string_value(json_object_get(root, "status"));
    const json_t *flag = json_object_get(root, "suspended");
    if (entry == NULL || status == NULL || !json_is_boolean(flag)) {
        return;
    }
    const Stentor__V1__Tenant *stored = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, str_of(entry->bytes, entry->len), call->base->http->arena,
        NULL);
    if (stored == NULL) {
        return;
    }
    bool same_status = strcmp(status, tenant_status_name(stored)) == 0;
    bool same_flag = json_is_true(flag) == (stored->suspended != 0);
    if (same_status != same_flag) {
        (void)json_object_del(root, same_status ? "status" : "suspended");
    }
}

// false: answered.
static bool read_settings(Call *call)
{
    ApiBody body = {0};
    Arena *arena = call->base->http->arena;
    bool ok = api_body_parse(&body, call->base->http->body, arena);
    if (ok && call->change == CHANGE_PATCH) {
        call->patch = json_incref(body.root);
        arena_own(arena, free_patch, call->patch);
    } else if (ok) {
        drop_unchanged(call, body.root);
        (void)tenant_json_read(&body, &call->wanted, &call->named);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// false: answered.
static bool read_domain(Call *call)
{
    char reason[ADDRESS_REASON_SIZE];
    return sender_domain_parse(
               call->base->params[0], call->base->http->arena, &call->domain, reason) ||
           api_refuse_field(call->base, "domain", "%s", reason);
}

static void change_tenant(ApiCall *base)
{
    bool puts = strcmp(base->route->method, "PUT") == 0;
    bool of_domain = base->params[0].len > 0;
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    call->base = base;
    call->change = of_domain ? (puts ? CHANGE_ADD_DOMAIN : CHANGE_REMOVE_DOMAIN)
                   : puts    ? CHANGE_PUT
                             : CHANGE_PATCH;
    stentor__v1__tenant__init(&call->wanted);
    call->wanted.tenant = base->tenant;
    const char *why = recipients_write_unready(call->api->bus);
    if (why != NULL) {
        api_answer_unavailable(base, why);
    } else if (
        precondition_read(base, &call->needs) &&
        (of_domain ? read_domain(call) : read_settings(call))) {
        subject_config(call->subject, "tenant", str_from(base->tenant), STR("self"));
        config_read(call->api->bus, call->subject, base->http->arena, on_stored_read, call);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/tenant", SCOPE_TENANT_READ, get_tenant, NULL, false},
    {"GET", "/v1/tenants", SCOPE_TENANTS_OPERATE, list_tenants, "limit cursor status", false},
    {"PUT", "/v1/tenant", SCOPE_TENANT_WRITE, change_tenant, NULL, true},
    {"PATCH", "/v1/tenant", SCOPE_TENANT_WRITE, change_tenant, NULL, true},
    {"PUT", "/v1/tenant/sender-domains/{}", SCOPE_TENANTS_OPERATE, change_tenant, NULL, true},
    {"DELETE", "/v1/tenant/sender-domains/{}", SCOPE_TENANTS_OPERATE, change_tenant, NULL, true},
};

void tenant_api_add(Api *api, TenantApi *tenants)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], tenants);
}
