// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/tenants/tenant_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/config_read.h"
#include "common/api/tenant_json.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "services/ingest/recipients/people_write.h"
#include "services/ingest/tenants/tenant_rules.h"

enum { ANSWER_MAX = 256 * 1024 };

struct TenantApi {
    Bus *bus;
    Map *entries; // tenant -> Entry
};

typedef struct Entry {
    size_t len;
    char bytes[]; // a packed stentor.v1.Tenant
} Entry;

typedef struct Call {
    TenantApi *api;
    ApiCall *base;
    Stentor__V1__Tenant wanted;
    unsigned named; // of the operator's fields
    Str payload;
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

void tenant_api_changed(TenantApi *api, Str tenant, Str payload)
{
    if (payload.len == 0) {
        (void)map_remove(api->entries, tenant);
        return;
    }
    Entry *entry = xmalloc(sizeof *entry + payload.len);
    entry->len = payload.len;
    memcpy(entry->bytes, payload.ptr, payload.len);
    map_put(api->entries, tenant, entry);
}

static void answer_settings(ApiCall *call, Str packed)
{
    Error err = {0};
    const Stentor__V1__Tenant *tenant = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, packed, call->http->arena, &err);
    if (tenant == NULL) {
        api_answer_failure(call, &err);
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX);
    tenant_json_print(tenant, &out);
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
    answer_settings(call, arena_str(call->http->arena, str_of(entry->bytes, entry->len)));
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Call *call = ctx;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        Problem problem = {.status = 409, .slug = "settings-changed"};
        problem.title = "The settings were changed by another at this moment: read them again";
        api_answer_problem(call->base, &problem);
        return;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    // The mirror brings it in a moment; this process's next GET must not show what was before.
    tenant_api_changed(call->api, str_from(call->base->tenant), call->payload);
    answer_settings(call->base, call->payload);
}

static void publish(Call *call, uint64_t replaces)
{
    char event_id[EVENT_ID_SIZE];
    uint8_t random[16]; // each put is a fact of its own
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, event_id);
    const BusHeader expected = bus_replaces(replaces, call->base->http->arena);
    BusOut out = {
        .subject = call->subject,
        .event_id = str_from(event_id),
        .payload = call->payload,
        .headers = &expected,
        .header_count = 1};
    bus_publish(call->api->bus, &out, on_stored, call);
    bus_flush(call->api->bus);
}

static void refuse(Call *call, TenantVerdict verdict, const FieldError *err)
{
    if (verdict == TENANT_UNVERIFIED) {
        api_answer_field(call->base, err);
        return;
    }
    metric_add(call->base->metrics->refused[REFUSED_SCOPE], 1);
    http_problem(
        call->base->http, 403, "operator-field", "The field is the operator's", err->field, "%s",
        err->text);
}

// A suspension may stand in the log and not yet be known here: who puts all the time would lift it.
static void on_stored_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Call *call = ctx;
    Error own = {0};
    FieldError wrong = {.field = ""};
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
    if (stored != NULL && stored->suspended) {
        api_answer_suspended(call->base);
        return;
    }
    TenantVerdict verdict = tenant_rules_apply(stored, call->named, &call->wanted, &wrong);
    if (verdict != TENANT_FINE) {
        refuse(call, verdict, &wrong);
    } else if (event_pack(&call->wanted.base, arena, &call->payload, &own)) {
        publish(call, sequence);
    } else {
        api_answer_failure(call->base, &own);
    }
}

// false: answered.
static bool read_settings(Call *call)
{
    ApiBody body = {0};
    stentor__v1__tenant__init(&call->wanted);
    call->wanted.tenant = call->base->tenant;
    call->wanted.updated_at_us = clock_now_us();
    bool ok = api_body_parse(&body, call->base->http->body, call->base->http->arena) &&
              tenant_json_read(&body, &call->wanted, &call->named) && api_body_end(&body);
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void put_tenant(ApiCall *base)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    call->base = base;
    const char *why = people_write_unready(call->api->bus);
    if (why != NULL) {
        api_answer_unavailable(base, why);
    } else if (read_settings(call)) {
        subject_config(call->subject, "tenant", str_from(base->tenant), STR("self"));
        config_read(call->api->bus, call->subject, base->http->arena, on_stored_read, call);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/tenant", SCOPE_TENANT_READ, get_tenant, NULL},
    {"PUT", "/v1/tenant", SCOPE_TENANT_WRITE, put_tenant, NULL},
};

void tenant_api_add(Api *api, TenantApi *tenants)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], tenants);
}
