// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/access_api.h"

#include "common/base/clock.h"

static json_t *scopes_json(ScopeSet scopes)
{
    json_t *list = json_array();
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        if ((scopes & SCOPE_BIT(scope)) != 0) {
            (void)json_array_append_new(list, json_string(scope_name(scope)));
        }
    }
    return list;
}

static void add_text(json_t *json, const char *name, Str text)
{
    (void)json_object_set_new(json, name, json_stringn(text.ptr, text.len));
}

static void add_caller(json_t *json, const ApiCall *call)
{
    if (call->session == NULL) {
        add_text(json, "key_id", call->key_id);
        return;
    }
    json_t *tenants = json_array();
    for (size_t i = 0; i < call->session->tenant_count; i++) {
        Str tenant = call->session->tenants[i];
        (void)json_array_append_new(tenants, json_stringn(tenant.ptr, tenant.len));
    }
    add_text(json, "user", call->session->user);
    add_text(json, "role", call->session->role);
    add_text(json, "session_id", call->session->id);
    (void)json_object_set_new(json, "tenants", tenants);
}

static void get_me(ApiCall *call)
{
    char until[CLOCK_RFC3339_SIZE];
    clock_format(call->expires_at_us, until);
    json_t *json = json_pack(
        "{s:s, s:o, s:b, s:s?}", "tenant", call->tenant, "scopes", scopes_json(call->scopes),
        "operator", call->operates, "expires_at", call->expires_at_us != 0 ? until : NULL);
    add_caller(json, call);
    api_answer_json(call, 200, json);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/me", SCOPE_NONE, get_me, NULL, false},
};

void access_api_add(Api *api, AccessApi *access, Bus *bus)
{
    access->audit_log.bus = bus;
    access->logins.pool = api->sessions.pool;
    access->logins.origin = api->sessions.origin;
    access->console.sessions = &api->sessions;
    access->console.unready = api->unready;
    access->console.unready_ctx = api->unready_ctx;
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], access);
    audit_log_api_add(api, &access->audit_log);
    console_logins_add(api, &access->logins);
}

void access_api_tick(AccessApi *access)
{
    audit_log_api_tick(&access->audit_log);
}

bool access_api_idle(const AccessApi *access)
{
    return access->audit_log.reading == 0;
}
