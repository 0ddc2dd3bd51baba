// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/guards/idempotency.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"

// ---- answers ----

void api_answer_unavailable(ApiCall *call, const char *why)
{
    metric_add(call->metrics->refused[REFUSED_UNAVAILABLE], 1);
    http_response_header(call->http, "Retry-After", STR("2"));
    http_problem(call->http, 503, "unavailable", "Temporarily unavailable", NULL, "%s", why);
}

static void name_all(HttpRequest *http, const Problem *problem)
{
    static_assert((int)PROBLEM_MORE_MAX < (int)HTTP_ERRORS_MAX, "an answer has room for all");
    if (problem->more_count == 0) {
        return;
    }
    HttpError *errors = arena_array(http->arena, problem->more_count + 1, sizeof *errors);
    errors[0] = (HttpError){problem->field, problem->detail};
    for (size_t i = 0; i < problem->more_count; i++) {
        errors[i + 1] = (HttpError){problem->more[i].field, problem->more[i].detail};
    }
    http->errors = errors;
    http->error_count = problem->more_count + 1;
}

void api_answer_problem(ApiCall *call, const Problem *problem)
{
    Refusal reason = problem->status == 400 ? REFUSED_MALFORMED : REFUSED_INVALID;
    metric_add(call->metrics->refused[reason], 1);
    name_all(call->http, problem);
    http_problem(
        call->http, problem->status, problem->slug, problem->title,
        problem->field[0] == '\0' ? NULL : problem->field, "%s", problem->detail);
}

bool api_refuse_field(ApiCall *call, const char *field, const char *format, ...)
{
    char detail[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    metric_add(call->metrics->refused[REFUSED_INVALID], 1);
    http_problem(
        call->http, 422, "invalid-field", "A field is not valid", field[0] == '\0' ? NULL : field,
        "%s", detail);
    return false;
}

void api_answer_field(ApiCall *call, const FieldError *err)
{
    (void)api_refuse_field(call, err->field, "%s", err->text);
}

void api_answer_parameter(ApiCall *call, const char *name, const char *format, ...)
{
    char detail[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    metric_add(call->metrics->refused[REFUSED_MALFORMED], 1);
    http_problem(
        call->http, 400, "invalid-parameter", "A query parameter is not valid", name, "%s", detail);
}

void api_answer_missing(ApiCall *call, const char *what)
{
    http_problem(call->http, 404, "not-found", "Not found", NULL, "no %s", what);
}

const char *api_caller_name(const ApiCall *call)
{
    return call->person
               ? call->actor
               : arena_printf(call->http->arena, "API key " STR_FMT, STR_ARG(call->key_id));
}

static void refuse_unknown_tenant(ApiCall *call)
{
    metric_add(call->metrics->refused[REFUSED_UNKNOWN_TENANT], 1);
    http_problem(
        call->http, 403, "tenant-unknown", "The tenant is not known", NULL,
        "tenant '%s' has no settings; an operator makes it with 'stentor tenant put %s'. If that "
        "was a moment ago, send the request again",
        call->tenant, call->tenant);
}

void api_answer_standing(ApiCall *call, TenantStanding standing)
{
    bool deleting = standing == STANDING_DELETING;
    if (standing == STANDING_UNKNOWN) {
        refuse_unknown_tenant(call);
        return;
    }
    metric_add(call->metrics->refused[REFUSED_SUSPENDED], 1);
    http_problem(
        call->http, 403, deleting ? "tenant-deleting" : "tenant-suspended",
        deleting ? "The tenant is being deleted" : "The tenant is suspended", NULL,
        "tenant '%s' may not send", call->tenant);
}

void api_answer_failure(ApiCall *call, const Error *err)
{
    bool may_pass = err->kind == ERROR_TRANSIENT || err->kind == ERROR_CANCELLED;
    bool is_new = false;
    const char *id = faults_note(call->faults, err, clock_now_us(), &is_new);
    if (is_new) {
        LOG(may_pass ? LOG_WARN : LOG_ERROR, "requests fail", log_text("fault", id),
            log_text("request", call->http->id), log_text("tenant", call->tenant), log_error(err));
    }
    call->http->instance = arena_printf(call->http->arena, "urn:stentor:fault:%s", id);
    if (may_pass) {
        api_answer_unavailable(
            call, "a server that this needs does not answer; send the request again");
        return;
    }
    metric_add(call->metrics->refused[REFUSED_UNAVAILABLE], 1);
    http_problem(
        call->http, 500, "internal", "Internal error", NULL,
        "the request was not carried out; the service's log has the reason under this instance");
}

void api_answer_json(ApiCall *call, int status, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    http_respond(call->http, status, "application/json", str_from(text != NULL ? text : "{}"));
    free(text);
    json_decref(json);
}

// ---- routes ----

static bool take_segment(Str *path, Str *ret)
{
    if (path->len == 0 || path->ptr[0] != '/') {
        return false;
    }
    *path = str_slice(*path, 1, path->len);
    ptrdiff_t end = str_find(*path, '/');
    size_t len = end < 0 ? path->len : (size_t)end;
    *ret = str_slice(*path, 0, len);
    *path = str_slice(*path, len, path->len);
    return true;
}

static bool path_matches(Str pattern, Str path, Str params[API_PARAMS_MAX])
{
    size_t found = 0;
    Str want = STR_EMPTY;
    Str is = STR_EMPTY;
    while (take_segment(&pattern, &want)) {
        if (!take_segment(&path, &is)) {
            return false;
        }
        if (!str_eq(want, STR("{}"))) {
            if (!str_eq(want, is)) {
                return false;
            }
        } else if (is.len == 0 || found == API_PARAMS_MAX) {
            return false;
        } else {
            params[found++] = is;
        }
    }
    return path.len == 0;
}

typedef struct Search {
    const ApiRoute *route; // NULL: none
    void *ctx;
    bool open;
    const char *methods[8]; // that the path knows
    size_t method_count;
} Search;

static bool is_read(const HttpRequest *http)
{
    return str_eq(http->method, STR("GET")) || str_eq(http->method, STR("HEAD"));
}

// HEAD is a GET whose body libmicrohttpd leaves out.
static void search_route(const Api *api, ApiCall *call, Search *search)
{
    const HttpRequest *http = call->http;
    Str method = is_read(http) ? STR("GET") : http->method;
    for (size_t s = 0; s < api->set_count; s++) {
        const ApiRoutes *set = &api->sets[s];
        for (size_t i = 0; i < set->count; i++) {
            const ApiRoute *route = &set->routes[i];
            Str params[API_PARAMS_MAX] = {STR_EMPTY};
            if (!path_matches(str_from(route->path), http->path, params)) {
                continue;
            }
            if (str_eq(str_from(route->method), method)) {
                *search = (Search){.route = route, .ctx = set->ctx, .open = set->open};
                for (size_t n = 0; n < API_PARAMS_MAX; n++) {
                    call->params[n] = params[n];
                }
                return;
            }
            if (search->method_count < sizeof search->methods / sizeof search->methods[0]) {
                search->methods[search->method_count++] = route->method;
            }
        }
    }
}

static void answer_no_route(ApiCall *call, const Search *search)
{
    HttpRequest *http = call->http;
    if (search->method_count == 0) {
        http_problem(
            http, 404, "not-found", "Not found", NULL,
            "no such path; services/gateway/API.md lists all of them");
        return;
    }
    Buf allow;
    buf_init(&allow, 256);
    for (size_t i = 0; i < search->method_count; i++) {
        buf_cstr(&allow, i > 0 ? ", " : "");
        buf_cstr(&allow, search->methods[i]);
        buf_cstr(&allow, strcmp(search->methods[i], "GET") == 0 ? ", HEAD" : "");
    }
    http_response_header(http, "Allow", buf_view(&allow));
    http_problem(
        http, 405, "method-not-allowed", "Method not allowed", NULL, "use " STR_FMT,
        STR_ARG(buf_view(&allow)));
    buf_done(&allow);
}

// ---- the caller ----

static void refuse_key(const Api *api, ApiCall *call, AuthVerdict verdict)
{
    static const char *const slugs[] = {
        [AUTH_UNKNOWN] = "unauthorized",
        [AUTH_REVOKED] = "key-revoked",
        [AUTH_EXPIRED] = "key-expired",
    };
    static const char *const details[] = {
        [AUTH_UNKNOWN] = "send 'Authorization: Bearer stn_<key id>.<secret>' with an active key",
        [AUTH_REVOKED] = "the key was revoked; ask the operator for a new one",
        [AUTH_EXPIRED] = "the key has expired; ask the operator for a new one",
    };
    metric_add(api->metrics->refused[REFUSED_UNAUTHORIZED], 1);
    http_response_header(call->http, "WWW-Authenticate", STR("Bearer"));
    http_problem(call->http, 401, slugs[verdict], "No valid API key", NULL, "%s", details[verdict]);
}

// The tenant that an operator names. Every other key acts for its own tenant.
static bool check_tenant(ApiCall *call)
{
    Str wanted = http_header(call->http, "Stentor-Tenant");
    if (wanted.len == 0 || str_eq(wanted, str_from(call->tenant))) {
        return true;
    }
    if (!call->operates) {
        metric_add(call->metrics->refused[REFUSED_SCOPE], 1);
        http_problem(
            call->http, 403, "foreign-tenant", "The API key belongs to another tenant", NULL,
            "key '" STR_FMT
            "' belongs to tenant '%s'; only an operator's key may name another tenant",
            STR_ARG(call->key_id), call->tenant);
        return false;
    }
    if (!id_is_tenant(wanted)) {
        metric_add(call->metrics->refused[REFUSED_INVALID], 1);
        http_problem(
            call->http, 422, "invalid-field", "A field is not valid", "Stentor-Tenant",
            "not a tenant id: 1 to 32 of a-z 0-9 '_' '-'");
        return false;
    }
    (void)str_to_c(wanted, call->tenant, TENANT_SIZE);
    return true;
}

// A key that is bound to addresses: only who has its secret learns that.
static bool check_address(const Api *api, ApiCall *call, const AuthCaller *caller)
{
    if (caller->from == NULL || http_ranges_have(caller->from, &call->http->client)) {
        return true;
    }
    char address[HTTP_ADDRESS_TEXT_SIZE];
    http_address_format(&call->http->client, address);
    metric_add(api->metrics->refused[REFUSED_SCOPE], 1);
    http_problem(
        call->http, 403, "address-not-allowed", "The API key may not be used from this address",
        NULL, "key '" STR_FMT "' is not allowed from %s; its allowed_cidrs name from where it is",
        STR_ARG(caller->key_id), address);
    return false;
}

static bool check_key(const Api *api, ApiCall *call)
{
    const HttpRequest *http = call->http;
    AuthCaller caller = {.key_id = STR_EMPTY};
    AuthVerdict verdict =
        auth_check(api->auth, http_header(http, "Authorization"), http->received_at_us, &caller);
    if (verdict != AUTH_OK) {
        refuse_key(api, call, verdict);
        return false;
    }
    if (!check_address(api, call, &caller)) {
        return false;
    }
    http_request_known(call->http);
    if (api->usage != NULL) {
        key_usage_note(api->usage, str_from(caller.tenant), caller.key_id, http->received_at_us);
    }
    memcpy(call->tenant, caller.tenant, TENANT_SIZE);
    call->key_id = caller.key_id;
    call->actor = arena_printf(http->arena, "key " STR_FMT, STR_ARG(caller.key_id));
    call->http->actor = call->actor;
    call->scopes = caller.scopes;
    call->expires_at_us = caller.expires_at_us;
    call->operates = (caller.scopes & SCOPE_BIT(SCOPE_TENANTS_OPERATE)) != 0;
    return check_tenant(call);
}

bool api_need_scope(ApiCall *call, Scope scope)
{
    if ((call->scopes & SCOPE_BIT(scope)) != 0) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_SCOPE], 1);
    http_problem(
        call->http, 403, "missing-scope", "The API key lacks a scope", NULL,
        "this request needs scope '%s', which key '" STR_FMT "' does not have", scope_name(scope),
        STR_ARG(call->key_id));
    return false;
}

static bool check_rights(ApiCall *call)
{
    const Api *api = call->api;
    const ApiRoute *route = call->route;
    // A suspension holds for the tenant; an operator still manages a suspended tenant, but sends
    // nothing for it either. One that is not known sends nothing: what it needs may be put first.
    bool sends = route->scope == SCOPE_NOTIFICATIONS_SEND || route->scope == SCOPE_BATCHES_WRITE;
    TenantStanding standing = catalog_standing(api->catalog, str_from(call->tenant));
    bool refused = standing == STANDING_UNKNOWN ? sends : sends || !call->operates;
    if (standing != STANDING_ACTIVE && refused) {
        api_answer_standing(call, standing);
        return false;
    }
    return (route->scope == SCOPE_NONE || api_need_scope(call, route->scope)) &&
           (api->allowance == NULL || allowance_admit(api->allowance, call));
}

// ---- a person ----

static bool check_origin(ApiCall *call)
{
    if (is_read(call->http) || sessions_same_origin(&call->api->sessions, call->http)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_SCOPE], 1);
    http_problem(
        call->http, 403, "foreign-origin", "The request comes from another site", NULL,
        "a session of the console writes from the console's own address only; programs use a key");
    return false;
}

static void refuse_session(ApiCall *call)
{
    metric_add(call->metrics->refused[REFUSED_UNAUTHORIZED], 1);
    http_problem(
        call->http, 401, "session-over", "The session is over", NULL,
        "sign in again at /console/login");
}

static void take_session(ApiCall *call, const ApiPerson *found)
{
    Arena *arena = call->http->arena;
    Str wanted = http_header(call->http, "Stentor-Tenant");
    Str tenant = found->tenants[0];
    ScopeSet scopes = scope_set_from_name(found->role);
    for (size_t i = 0; i < found->tenant_count; i++) {
        bool operates = str_eq(found->tenants[i], AUTH_PLATFORM) &&
                        (scopes & SCOPE_BIT(SCOPE_TENANTS_OPERATE)) != 0;
        tenant = operates || str_eq(found->tenants[i], wanted) ? found->tenants[i] : tenant;
        call->operates |= operates;
    }
    ApiPerson *copy = arena_alloc(arena, sizeof *copy);
    *copy = *found;
    call->session = copy;
    call->scopes = call->operates ? scopes : scopes & ~SCOPE_BIT(SCOPE_TENANTS_OPERATE);
    call->expires_at_us = found->expires_at_us;
    call->actor = arena_printf(arena, "user " STR_FMT, STR_ARG(found->user));
    call->key_id = str_from(call->actor);
    call->http->actor = call->actor;
    (void)str_to_c(tenant, call->tenant, sizeof call->tenant);
    http_request_known(call->http);
}

// A leaked key may have signed its finder in: revoking the key ends that too.
static bool its_key_is_withdrawn(const Api *api, const ApiPerson *found)
{
    Str by = STR("key ");
    Str key_id = str_slice(found->made_by, by.len, found->made_by.len);
    return str_starts(found->made_by, by) && auth_is_withdrawn(api->auth, key_id, clock_now_us());
}

static void on_session_read(void *ctx, const ApiPerson *found, const Error *err)
{
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    if (found == NULL || its_key_is_withdrawn(call->api, found)) {
        refuse_session(call);
        return;
    }
    take_session(call, found);
    if (check_tenant(call) && check_rights(call)) {
        api_audit_run(&call->api->audit, call);
    }
}

// A key counts before a cookie: a program that has both means the key.
static bool check_caller(ApiCall *call)
{
    const Api *api = call->api;
    Str secret = http_header(call->http, "Authorization").len > 0
                     ? STR_EMPTY
                     : sessions_secret(&api->sessions, call->http);
    if (secret.len == 0) {
        return check_key(api, call) && check_rights(call);
    }
    call->person = true;
    call->secret = arena_str(call->http->arena, secret);
    return check_origin(call);
}

// A compressed body would be answered as invalid JSON.
static bool check_coding(ApiCall *call)
{
    Str coding = http_header(call->http, "Content-Encoding");
    if (coding.len == 0 || str_eq_nocase(coding, STR("identity"))) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_MALFORMED], 1);
    http_problem(
        call->http, 415, "content-encoding", "The content encoding is not supported",
        "Content-Encoding", "send the body without the encoding '" STR_FMT "'",
        STR_ARG(str_slice(coding, 0, 40)));
    return false;
}

// ---- the query and its headers ----

static bool takes(const ApiRoute *route, Str name)
{
    Str rest = str_from(route->query);
    Str known = STR_EMPTY;
    while (str_split(&rest, ' ', &known)) {
        if (known.len > 0 && str_eq(known, name)) {
            return true;
        }
    }
    return false;
}

static void refuse_unknown(ApiCall *call, Str name)
{
    const char *field = arena_cstr(call->http->arena, str_slice(name, 0, 64));
    if (call->route->query == NULL) {
        api_answer_parameter(call, field, "unknown; this route takes no query parameters");
        return;
    }
    Buf known;
    buf_init(&known, 256);
    Str rest = str_from(call->route->query);
    Str token = STR_EMPTY;
    while (str_split(&rest, ' ', &token)) {
        buf_cstr(&known, known.len > 0 ? ", " : "");
        buf_str(&known, token);
    }
    api_answer_parameter(call, field, "unknown; this route takes %s", buf_c(&known));
    buf_done(&known);
}

static bool check_query(ApiCall *call)
{
    HttpArgument arguments[API_ARGUMENTS_MAX]; // one more than a route has: the first wrong is here
    size_t count = http_arguments(call->http, arguments, API_ARGUMENTS_MAX);
    for (size_t i = 0; i < count && i < API_ARGUMENTS_MAX; i++) {
        Str name = arguments[i].name;
        if (!takes(call->route, name)) {
            refuse_unknown(call, name);
            return false;
        }
        for (size_t n = 0; n < i; n++) {
            if (str_eq(arguments[n].name, name)) {
                const char *field = arena_cstr(call->http->arena, name);
                api_answer_parameter(call, field, "given twice; give it once");
                return false;
            }
        }
    }
    return true;
}

// A caller would take an ignored precondition for one that held.
static bool check_conditions(ApiCall *call)
{
    static const char *const names[] = {"If-Match", "If-None-Match", "If-Unmodified-Since"};
    bool reads = is_read(call->http);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !reads; i++) {
        bool taken = call->route->conditional && i < 2;
        if (!taken && http_header(call->http, names[i]).len > 0) {
            metric_add(call->metrics->refused[REFUSED_MALFORMED], 1);
            http_problem(
                call->http, 400, "invalid-precondition", "A precondition is not valid", names[i],
                "%s",
                call->route->conditional ? "send If-Match with an ETag instead"
                                         : "this route takes no preconditions; leave it out");
            return false;
        }
    }
    return true;
}

bool api_admit(void *ctx, HttpRequest *request)
{
    Api *api = ctx;
    ApiCall *call = arena_zalloc(request->arena, sizeof *call);
    call->http = request;
    call->metrics = api->metrics;
    call->faults = &api->faults;
    call->page_keys = &api->page_keys;
    call->api = api;
    Search search = {0};
    search_route(api, call, &search);
    if (search.route == NULL) {
        answer_no_route(call, &search);
        return false;
    }
    call->route = search.route;
    request->route = search.route->path;
    call->ctx = search.ctx;
    const char *unready = api->unready(api->unready_ctx);
    if (unready != NULL) {
        api_answer_unavailable(call, unready);
        return false;
    }
    bool known = search.open || check_caller(call);
    if (!known || !check_coding(call) || !check_query(call) || !check_conditions(call)) {
        return false;
    }
    request->admitted = call;
    return true;
}

void api_run(ApiCall *call)
{
    Idempotency *idempotency = call->api->idempotency;
    if (idempotency_covers(idempotency, call)) {
        idempotency_run(idempotency, call);
    } else {
        call->route->handle(call);
    }
}

void api_handle(void *ctx, HttpRequest *request)
{
    const Api *api = ctx;
    ApiCall *call = request->admitted;
    if (call->person) {
        sessions_read(&api->sessions, call->secret, request->arena, on_session_read, call);
    } else {
        api_audit_run(&api->audit, call);
    }
}

static size_t count_names(const char *query)
{
    Str rest = str_from(query);
    Str token = STR_EMPTY;
    size_t count = 0;
    while (str_split(&rest, ' ', &token)) {
        count++;
    }
    return count;
}

Str api_route_word(const ApiCall *call)
{
    return str_from(strrchr(call->route->path, '/') + 1);
}

static void add_set(Api *api, ApiRoutes set)
{
    assert(api->set_count < API_ROUTE_SETS_MAX);
    for (size_t i = 0; i < set.count; i++) {
        bool scopeless = set.open || strcmp(set.routes[i].path, API_ANY_CALLER) == 0;
        assert((set.routes[i].scope == SCOPE_NONE) == scopeless);
        assert(count_names(set.routes[i].query) < API_ARGUMENTS_MAX);
    }
    api->sets[api->set_count++] = set;
}

void api_add(Api *api, const ApiRoute *routes, size_t count, void *ctx)
{
    add_set(api, (ApiRoutes){routes, count, ctx, false});
}

void api_add_open(Api *api, const ApiRoute *routes, size_t count, void *ctx)
{
    add_set(api, (ApiRoutes){routes, count, ctx, true});
}

void api_add_others(Api *api, const ApiOther *others, size_t count)
{
    assert(api->other_count + count <= API_OTHERS_MAX);
    for (size_t i = 0; i < count; i++) {
        api->others[api->other_count++] = &others[i];
    }
}

// ---- listed ----

static void print_route(const ApiRoute *route, bool open, Buf *out)
{
    const char *any = open ? "none" : "any";
    buf_printf(
        out, "%s\t%s\t%s\t%s\t%s\n", route->method, route->path,
        route->scope == SCOPE_NONE ? any : scope_name(route->scope),
        route->conditional ? "conditional" : "-", route->query != NULL ? route->query : "");
}

void api_print_routes(const Api *api, Buf *out)
{
    for (size_t s = 0; s < api->set_count; s++) {
        for (size_t i = 0; i < api->sets[s].count; i++) {
            print_route(&api->sets[s].routes[i], api->sets[s].open, out);
        }
    }
    for (size_t i = 0; i < api->other_count; i++) {
        const ApiOther *other = api->others[i];
        buf_printf(
            out, "%s\t%s\t%s\t-\t%s\n", other->method, other->path, other->caller,
            other->query != NULL ? other->query : "");
    }
}
