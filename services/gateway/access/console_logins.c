// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_logins.h"

#include "common/api/api_json.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "services/gateway/access/console_sql.h"

static const int64_t SECOND_US = 1000000;

typedef struct Made {
    ApiCall *call;
    char secret[SESSION_SECRET_SIZE];
} Made;

// ---- a link ----

static void on_made(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    const Made *made = ctx;
    ApiCall *call = made->call;
    const ConsoleLogins *logins = call->ctx;
    char until[CLOCK_RFC3339_SIZE];
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    clock_format(call->http->received_at_us + CONSOLE_LINK_S * SECOND_US, until);
    const char *path = arena_printf(call->http->arena, "/console/login?token=%s", made->secret);
    json_t *json = json_pack("{s:s, s:s}", "path", path, "expires_at", until);
    if (logins->origin.len > 0) {
        const char *url =
            arena_printf(call->http->arena, STR_FMT "%s", STR_ARG(logins->origin), path);
        (void)json_object_set_new(json, "url", json_string(url));
    }
    api_answer_json(call, 201, json);
}

static bool may_grant(ApiCall *call, ScopeSet scopes)
{
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        if ((scopes & SCOPE_BIT(scope)) != 0 && !api_need_scope(call, scope)) {
            return false;
        }
    }
    return true;
}

// false: answered.
static bool read_user(ApiCall *call, ConsoleUser *user)
{
    ApiBody body = {0};
    Arena *arena = call->http->arena;
    bool platform = str_eq(str_from(call->tenant), AUTH_PLATFORM);
    Str name = STR("operator");
    *user = (ConsoleUser){
        .role = platform ? STR("operator") : STR("owner"),
        .tenants = str_from(call->tenant),
        .made_by = str_from(call->actor),
    };
    Str text = call->http->body.len > 0 ? call->http->body : STR("{}");
    if (api_body_parse(&body, text, arena)) {
        (void)api_read_text(&body, "name", CONSOLE_NAME_MAX, &name);
        (void)api_read_text(&body, "role", CONSOLE_NAME_MAX, &user->role);
        user->name = console_name(name, arena);
        user->role = arena_str(arena, user->role);
        if (user->name.len == 0) {
            (void)api_body_fail(&body, "name", "must be one line of text");
        }
        ScopeSet scopes = scope_set_from_name(user->role);
        if (scopes == 0) {
            (void)api_body_fail(&body, "role", "not a role such as 'support' or 'viewer'");
        } else if (!platform && (scopes & SCOPE_BIT(SCOPE_TENANTS_OPERATE)) != 0) {
            (void)api_body_fail(&body, "role", "only tenant 'platform' has operators");
        }
        (void)api_body_end(&body);
    }
    bool good = body.problem.status == 0;
    if (!good) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return good;
}

static void post_login(ApiCall *call)
{
    const ConsoleLogins *logins = call->ctx;
    ConsoleUser user;
    uint8_t secret[SESSION_SECRET_LEN], hash[SHA256_LEN];
    if (!read_user(call, &user) || !may_grant(call, scope_set_from_name(user.role))) {
        return;
    }
    Made *made = arena_zalloc(call->http->arena, sizeof *made);
    made->call = call;
    random_bytes(secret, sizeof secret);
    hex_encode(secret, sizeof secret, made->secret);
    session_hash(str_from(made->secret), hash);
    DbTxn *txn = db_txn_new(logins->pool);
    console_add_login(txn, hash, &user);
    db_txn_submit(txn, on_made, made);
}

// ---- sessions ----

static json_t *tenants_json(Str list)
{
    json_t *tenants = json_array();
    Str tenant = STR_EMPTY;
    while (str_split(&list, ',', &tenant)) {
        (void)json_array_append_new(tenants, json_stringn(tenant.ptr, tenant.len));
    }
    return tenants;
}

static json_t *session_json(const PGresult *rows, int row)
{
    static const char *const texts[] = {"id", "user", "role"};
    static const char *const times[] = {"made_at", "seen_at", "expires_at"};
    json_t *json = json_object();
    for (int i = 0; i < 3; i++) {
        Str text = db_get_text(rows, row, i);
        (void)json_object_set_new(json, texts[i], json_stringn(text.ptr, text.len));
    }
    (void)json_object_set_new(json, "tenants", tenants_json(db_get_text(rows, row, 3)));
    Str made_by = db_get_text(rows, row, 4);
    (void)json_object_set_new(json, "made_by", json_stringn(made_by.ptr, made_by.len));
    for (int i = 0; i < 3; i++) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(db_get_time(rows, row, 5 + i), text);
        (void)json_object_set_new(json, times[i], json_string(text));
    }
    return json;
}

typedef struct Listing {
    ApiCall *call;
    Page page;
} Listing;

// One row more than fits was asked for.
static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    const Listing *listing = ctx;
    if (err != NULL) {
        api_answer_failure(listing->call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int limit = (int)listing->page.limit;
    bool more = db_rows(rows) > limit;
    int shown = more ? limit : db_rows(rows);
    json_t *list = json_array();
    for (int i = 0; i < shown; i++) {
        (void)json_array_append_new(list, session_json(rows, i));
    }
    page_answer(listing->call, list, more ? db_get_text(rows, shown - 1, 0) : STR_EMPTY);
}

static void get_sessions(ApiCall *call)
{
    const ConsoleLogins *logins = call->ctx;
    Listing *listing = arena_zalloc(call->http->arena, sizeof *listing);
    listing->call = call;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &listing->page)) {
        return;
    }
    DbTxn *txn = db_txn_new(logins->pool);
    (void)console_add_list(
        txn, str_from(call->tenant), listing->page.after, listing->page.limit + 1);
    db_txn_submit(txn, on_listed, listing);
}

static void on_revoked(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        api_answer_missing(
            call, arena_printf(
                      call->http->arena, "session '" STR_FMT "'",
                      STR_ARG(str_slice(call->params[0], 0, 64))));
    } else {
        http_respond(call->http, 204, NULL, STR_EMPTY);
    }
}

static void delete_session(ApiCall *call)
{
    const ConsoleLogins *logins = call->ctx;
    DbTxn *txn = db_txn_new(logins->pool);
    (void)console_add_revoke(txn, str_from(call->tenant), call->params[0]);
    db_txn_submit(txn, on_revoked, call);
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/console/logins", SCOPE_KEYS_MANAGE, post_login, NULL, false},
    {"GET", "/v1/console/sessions", SCOPE_KEYS_MANAGE, get_sessions, "limit cursor", false},
    {"DELETE", "/v1/console/sessions/{}", SCOPE_KEYS_MANAGE, delete_session, NULL, false},
};

void console_logins_add(Api *api, ConsoleLogins *logins)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], logins);
}
