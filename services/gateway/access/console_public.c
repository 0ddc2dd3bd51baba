// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_public.h"

#include "common/base/clock.h"
#include "common/base/log.h"

typedef struct Entering {
    ConsolePublic *console;
    HttpRequest *http;
    int result; // of the statement that begins the session
    char secret[SESSION_SECRET_SIZE];
    char id[ID_SIZE];
} Entering;

bool console_is_path(Str path)
{
    return str_eq(path, STR("/console/login")) || str_eq(path, STR("/console/logout"));
}

static void refuse(HttpRequest *http, int status, const char *slug, const char *detail)
{
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(http, status, slug, "No session", NULL, "%s", detail);
}

bool console_public_admit(ConsolePublic *console, HttpRequest *http)
{
    bool out = str_eq(http->path, STR("/console/logout"));
    const char *unready = console->unready(console->unready_ctx);
    http->route = out ? "/console/logout" : "/console/login";
    http->body_max = 0;
    if (unready != NULL) {
        http_response_header(http, "Retry-After", STR("2"));
        refuse(http, 503, "unavailable", unready);
    } else if (!str_eq(http->method, out ? STR("POST") : STR("GET"))) {
        http_response_header(http, "Allow", out ? STR("POST") : STR("GET"));
        refuse(http, 405, "method-not-allowed", out ? "use POST" : "use GET");
    } else if (!sessions_allowed(console->sessions, http)) {
        refuse(
            http, 403, "plain-http",
            "over plain HTTP the console is for the machine itself; set STENTOR_CONSOLE_URL");
    } else if (out && !sessions_same_origin(console->sessions, http)) {
        refuse(http, 403, "foreign-origin", "sign out from the console's own page");
    } else {
        return true;
    }
    return false;
}

static void set_cookie(const ConsolePublic *console, HttpRequest *http, const char *value)
{
    const Sessions *sessions = console->sessions;
    const char *secure = sessions_are_secure(sessions) ? "; Secure" : "";
    const char *gone = value[0] == '\0' ? "; Max-Age=0" : "";
    const char *cookie = arena_printf(
        http->arena, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s%s", sessions_cookie(sessions), value,
        secure, gone);
    http_response_header(http, "Set-Cookie", str_from(cookie));
    http_response_header(http, "Cache-Control", STR("no-store"));
}

static void go_to(HttpRequest *http, const char *place)
{
    http_response_header(http, "Location", str_from(place));
    http_respond(http, 303, NULL, STR_EMPTY);
}

// ---- in ----

static void fail(HttpRequest *http, const Error *err)
{
    LOG(LOG_WARN, "signing in or out at the console failed", log_error(err));
    http_response_header(http, "Retry-After", STR("2"));
    refuse(http, 503, "unavailable", "a server that this needs does not answer; try again");
}

static void on_entered(void *ctx, DbTxn *txn, const Error *err)
{
    Entering *entering = ctx;
    HttpRequest *http = entering->http;
    const PGresult *rows = err == NULL ? db_txn_result(txn, entering->result) : NULL;
    if (err != NULL) {
        fail(http, err);
    } else if (db_rows(rows) == 0) {
        refuse(
            http, 403, "link-over",
            "the link was used or its ten minutes are over: 'stentor console login' makes a new "
            "one");
    } else {
        LOG(LOG_INFO, "a person signed in", log_str("user", db_get_text(rows, 0, 0)),
            log_str("role", db_get_text(rows, 0, 1)), log_text("session", entering->id));
        set_cookie(entering->console, http, entering->secret);
        go_to(http, "/console/");
    }
}

static Entering *enter(ConsolePublic *console, HttpRequest *http, uint8_t ret_hash[SHA256_LEN])
{
    uint8_t secret[SESSION_SECRET_LEN];
    Entering *entering = arena_zalloc(http->arena, sizeof *entering);
    entering->console = console;
    entering->http = http;
    random_bytes(secret, sizeof secret);
    hex_encode(secret, sizeof secret, entering->secret);
    session_hash(str_from(entering->secret), ret_hash);
    id_new("ses_", http->received_at_us, entering->id);
    return entering;
}

static void log_in(ConsolePublic *console, HttpRequest *http)
{
    Str token = http_query(http, "token");
    uint8_t link[SHA256_LEN], hash[SHA256_LEN];
    if (token.len == 0) {
        refuse(http, 403, "no-link", "ask an operator for a link: 'stentor console login'");
        return;
    }
    session_hash(token, link);
    Entering *entering = enter(console, http, hash);
    DbTxn *txn = db_txn_new(console->sessions->pool);
    entering->result = console_add_use(txn, link, hash, entering->id, &console->times);
    db_txn_submit(txn, on_entered, entering);
}

// ---- out ----

static void on_left(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    const Entering *leaving = ctx;
    if (err != NULL) {
        fail(leaving->http, err);
        return;
    }
    set_cookie(leaving->console, leaving->http, "");
    go_to(leaving->http, "/console/");
}

static void log_out(ConsolePublic *console, HttpRequest *http)
{
    uint8_t hash[SHA256_LEN];
    Str secret = sessions_secret(console->sessions, http);
    if (secret.len == 0) {
        refuse(http, 401, "session-over", "there is no session");
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

void console_public_handle(ConsolePublic *console, HttpRequest *http)
{
    if (str_eq(http->path, STR("/console/logout"))) {
        log_out(console, http);
    } else {
        log_in(console, http);
    }
}
