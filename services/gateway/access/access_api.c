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

static void get_me(ApiCall *call)
{
    char until[CLOCK_RFC3339_SIZE];
    clock_format(call->expires_at_us, until);
    json_t *json = json_pack(
        "{s:s, s:s%, s:o, s:b, s:s?}", "tenant", call->tenant, "key_id", call->key_id.ptr,
        call->key_id.len, "scopes", scopes_json(call->scopes), "operator", call->operates,
        "expires_at", call->expires_at_us != 0 ? until : NULL);
    api_answer_json(call, 200, json);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/me", SCOPE_NONE, get_me, NULL, false},
};

void access_api_add(Api *api, AccessApi *access)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], access);
}
