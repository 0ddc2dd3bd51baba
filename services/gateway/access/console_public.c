// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_public.h"

#include "services/gateway/access/console_answer.h"
#include "services/gateway/access/console_enter.h"
#include "services/gateway/access/console_link.h"
#include "services/gateway/access/oidc/oidc_public.h"

typedef struct ConsoleRoute {
    const char *path, *method;
    void (*handle)(const ConsolePublic *console, HttpRequest *http);
    size_t body_max;
    bool says; // what anyone may know, whatever is away
} ConsoleRoute;

static void show_ways(const ConsolePublic *console, HttpRequest *http)
{
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(
        http, 200, "application/json",
        console->oidc != NULL ? STR("{\"link\": true, \"oidc\": true}")
                              : STR("{\"link\": true, \"oidc\": false}"));
}

// ---- out ----

static void on_left(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    const Entering *leaving = ctx;
    const Sessions *sessions = leaving->console->sessions;
    if (err != NULL) {
        console_fail(leaving->http, err);
        return;
    }
    console_cookie(sessions, leaving->http, sessions_cookie(sessions), "", 0);
    console_go_to(leaving->http, "/console/");
}

static void log_out(const ConsolePublic *console, HttpRequest *http)
{
    uint8_t hash[SHA256_LEN];
    Str secret = sessions_secret(console->sessions, http);
    if (secret.len == 0) {
        console_refuse(http, 401, "session-over", "there is no session");
        return;
    }
    Entering *leaving = arena_zalloc(http->arena, sizeof *leaving);
    leaving->console = console;
    leaving->http = http;
    session_hash(secret, hash);
    DbTxn *txn = db_txn_new(console->sessions->pool);
    console_add_end(txn, hash);
    db_txn_submit(txn, on_left, leaving);
}

// ---- routes ----

// clang-format off
static const ConsoleRoute ROUTES[] = {
    {"/console/login",    "GET",  console_link_show, 0,                     false},
    {"/console/login",    "POST", console_link_use,  CONSOLE_LINK_BODY_MAX, false},
    {"/console/oidc",     "GET",  oidc_begin,        0,                     false},
    {"/console/callback", "GET",  oidc_callback,     0,                     false},
    {"/console/logout",   "POST", log_out,           0,                     false},
    {"/console/ways",     "GET",  show_ways,         0,                     true},
};
// clang-format on

// Of this path, and of this method where that has one.
static const ConsoleRoute *route_of(Str path, Str method)
{
    const ConsoleRoute *found = NULL;
    for (size_t i = 0; i < sizeof ROUTES / sizeof ROUTES[0]; i++) {
        if (str_eq(path, str_from(ROUTES[i].path))) {
            found = &ROUTES[i];
            if (str_eq(method, str_from(found->method))) {
                break;
            }
        }
    }
    return found;
}

static void refuse_method(HttpRequest *http, Str path)
{
    Str methods[2];
    size_t count = 0;
    for (size_t i = 0; i < sizeof ROUTES / sizeof ROUTES[0]; i++) {
        if (str_eq(path, str_from(ROUTES[i].path))) {
            methods[count++] = str_from(ROUTES[i].method);
        }
    }
    const char *both = arena_printf(
        http->arena, STR_FMT "%s" STR_FMT, STR_ARG(methods[0]), count > 1 ? ", " : "",
        STR_ARG(count > 1 ? methods[1] : STR_EMPTY));
    http_response_header(http, "Allow", str_from(both));
    console_refuse(http, 405, "method-not-allowed", arena_printf(http->arena, "use %s", both));
}

bool console_is_path(Str path)
{
    return route_of(path, STR_EMPTY) != NULL;
}

static bool admit_person(const ConsolePublic *console, HttpRequest *http, bool writes)
{
    const char *unready = console->unready(console->unready_ctx);
    if (unready != NULL) {
        http_response_header(http, "Retry-After", STR("2"));
        console_refuse(http, 503, "unavailable", unready);
    } else if (!sessions_allowed(console->sessions, http)) {
        console_refuse(
            http, 403, "plain-http",
            "over plain HTTP the console is for the machine itself; set STENTOR_CONSOLE_URL");
    } else if (writes && !sessions_same_origin(console->sessions, http)) {
        console_refuse(
            http, 403, "foreign-origin", "only a page of the console itself may do that");
    } else {
        return true;
    }
    return false;
}

bool console_public_admit(const ConsolePublic *console, HttpRequest *http)
{
    const ConsoleRoute *route = route_of(http->path, http->method);
    bool posts = str_eq(str_from(route->method), STR("POST"));
    http->route = route->path;
    http->body_max = route->body_max;
    if (!str_eq(http->method, str_from(route->method))) {
        http->body_max = 0;
        refuse_method(http, http->path);
        return false;
    }
    return route->says || admit_person(console, http, posts);
}

void console_public_handle(const ConsolePublic *console, HttpRequest *http)
{
    route_of(http->path, http->method)->handle(console, http);
}
