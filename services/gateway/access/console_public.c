// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_public.h"

#include "services/gateway/access/console_answer.h"
#include "services/gateway/access/console_enter.h"
#include "services/gateway/access/oidc/oidc_public.h"

typedef struct ConsoleRoute {
    const char *path, *method;
    void (*handle)(const ConsolePublic *console, HttpRequest *http);
    bool says; // what anyone may know, whatever is away
} ConsoleRoute;

// ---- in ----

static void log_in(const ConsolePublic *console, HttpRequest *http)
{
    Str token = http_query(http, "token");
    uint8_t link[SHA256_LEN], hash[SHA256_LEN];
    if (token.len == 0) {
        console_refuse(http, 403, "no-link", "ask an operator for a link: 'stentor console login'");
        return;
    }
    session_hash(token, link);
    Entering *entering = console_enter(console, http, hash);
    entering->slug = "link-over";
    entering->over = "the link was used or its ten minutes are over: 'stentor console login' makes "
                     "a new one";
    DbTxn *txn = db_txn_new(console->sessions->pool);
    entering->result = console_add_use(txn, link, hash, entering->id, &console->times);
    db_txn_submit(txn, console_on_entered, entering);
}

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

static const ConsoleRoute ROUTES[] = {
    {"/console/login", "GET", log_in, false},           {"/console/oidc", "GET", oidc_begin, false},
    {"/console/callback", "GET", oidc_callback, false}, {"/console/logout", "POST", log_out, false},
    {"/console/ways", "GET", show_ways, true},
};

static const ConsoleRoute *route_of(Str path)
{
    for (size_t i = 0; i < sizeof ROUTES / sizeof ROUTES[0]; i++) {
        if (str_eq(path, str_from(ROUTES[i].path))) {
            return &ROUTES[i];
        }
    }
    return NULL;
}

bool console_is_path(Str path)
{
    return route_of(path) != NULL;
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
        console_refuse(http, 403, "foreign-origin", "sign out from the console's own page");
    } else {
        return true;
    }
    return false;
}

bool console_public_admit(const ConsolePublic *console, HttpRequest *http)
{
    const ConsoleRoute *route = route_of(http->path);
    bool posts = str_eq(str_from(route->method), STR("POST"));
    http->route = route->path;
    http->body_max = 0;
    if (!str_eq(http->method, str_from(route->method))) {
        http_response_header(http, "Allow", str_from(route->method));
        console_refuse(http, 405, "method-not-allowed", posts ? "use POST" : "use GET");
        return false;
    }
    return route->says || admit_person(console, http, posts);
}

void console_public_handle(const ConsolePublic *console, HttpRequest *http)
{
    route_of(http->path)->handle(console, http);
}
