// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/oidc_public.h"

#include <stdlib.h>

#include "common/base/log.h"
#include "common/vendor/form.h"
#include "services/gateway/access/console_answer.h"
#include "services/gateway/access/console_enter.h"
#include "services/gateway/access/oidc/oidc_json.h"
#include "services/gateway/access/oidc/oidc_login.h"
#include "services/gateway/access/oidc/oidc_provider.h"
#include "services/gateway/access/oidc/oidc_roles.h"

enum { CODE_MAX = 4096, QUERY_MAX = 64 * 1024, NAME_BYTES = 8 };

struct Oidc {
    OidcProvider *provider;
    const OidcOptions *options;
    OidcLoginKeys keys;
    OidcRoles roles;
    char *redirect; // our own callback
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

typedef struct Signing {
    const ConsolePublic *console;
    HttpRequest *http;
    OidcLogin login;
} Signing;

// ---- configuration ----

static bool check_options(const OidcOptions *options, Str origin, OidcRoles *ret_roles, Error *err)
{
    Str word = STR_EMPTY, scopes = str_from(options->scopes);
    bool openid = false;
    while (str_split(&scopes, ' ', &word)) {
        openid |= str_eq(word, STR("openid"));
    }
    const char *wrong = origin.len == 0
                            ? "STENTOR_CONSOLE_URL is empty: the provider sends people back to it"
                        : options->client_id[0] == '\0'    ? "STENTOR_OIDC_CLIENT_ID is empty"
                        : !openid                          ? "STENTOR_OIDC_SCOPES lacks 'openid'"
                        : options->groups_claim[0] == '\0' ? "STENTOR_OIDC_GROUPS_CLAIM is empty"
                                                           : NULL;
    if (wrong != NULL) {
        return error_set(err, ERROR_CONFIG, "STENTOR_OIDC_ISSUER is set and %s", wrong);
    }
    return oidc_roles_parse(str_from(options->roles), ret_roles, err) ||
           error_wrap(err, "STENTOR_OIDC_ROLES");
}

bool oidc_new(
    uv_loop_t *loop, const OidcOptions *options, const MasterKey *master, Str origin, Oidc **ret,
    Error *err)
{
    *ret = NULL;
    if (options->issuer[0] == '\0') {
        return (options->client_id[0] == '\0' && options->roles[0] == '\0') ||
               error_set(
                   err, ERROR_CONFIG,
                   "STENTOR_OIDC_CLIENT_ID or STENTOR_OIDC_ROLES is set and STENTOR_OIDC_ISSUER is "
                   "empty");
    }
    Oidc *oidc = xcalloc(1, sizeof *oidc);
    oidc->options = options;
    oidc_login_keys(master, &oidc->keys);
    bool good = check_options(options, origin, &oidc->roles, err);
    oidc->provider = good ? oidc_provider_new(loop, options, err) : NULL;
    if (oidc->provider == NULL) {
        free(oidc);
        return !good ? false : error_wrap(err, "STENTOR_OIDC_ISSUER");
    }
    Buf redirect;
    buf_init(&redirect, QUERY_MAX);
    buf_printf(&redirect, STR_FMT "/console/callback", STR_ARG(origin));
    oidc->redirect = xstrdup(buf_c(&redirect));
    buf_done(&redirect);
    *ret = oidc;
    return true;
}

static void on_provider_freed(void *ctx)
{
    Oidc *oidc = ctx;
    oidc->on_freed(oidc->freed_ctx);
    free(oidc->redirect);
    free(oidc);
}

void oidc_free(Oidc *oidc, void (*on_freed)(void *ctx), void *ctx)
{
    if (oidc == NULL) {
        on_freed(ctx);
        return;
    }
    oidc->on_freed = on_freed;
    oidc->freed_ctx = ctx;
    oidc_provider_free(oidc->provider, on_provider_freed, oidc);
}

// ---- refusals ----

static void fail(HttpRequest *http, const Error *err)
{
    bool ours = err->kind == ERROR_CONFIG;
    LOG(ours ? LOG_ERROR : LOG_WARN, "the OpenID provider could not be used",
        log_text("request", http->id), log_error(err));
    http_response_header(http, "Retry-After", STR("5"));
    console_refuse(
        http, 503, "provider-unavailable",
        ours ? "the identity provider and this installation do not agree; an operator finds why in "
               "the gateway's log, and 'stentor console login' makes a link to sign in by"
             : "the identity provider does not answer; try again, or ask an operator for a link: "
               "'stentor console login'");
}

static bool is_there(const ConsolePublic *console, HttpRequest *http)
{
    if (console->oidc == NULL) {
        console_refuse(
            http, 404, "no-provider",
            "there is no identity provider here (STENTOR_OIDC_ISSUER); ask an operator for a link: "
            "'stentor console login'");
    }
    return console->oidc != NULL;
}

// ---- to the provider ----

static const char *cookie_name(const Sessions *sessions)
{
    return sessions_are_secure(sessions) ? "__Host-stentor-login" : "stentor-login";
}

static const char *address_of(const Signing *signing, const OidcDocument *found)
{
    const Oidc *oidc = signing->console->oidc;
    char challenge[OIDC_TEXT_SIZE];
    Buf query;
    oidc_login_challenge(&signing->login, challenge);
    buf_init(&query, QUERY_MAX);
    form_put(&query, "response_type", STR("code"));
    form_put(&query, "client_id", str_from(oidc->options->client_id));
    form_put(&query, "redirect_uri", str_from(oidc->redirect));
    form_put(&query, "scope", str_from(oidc->options->scopes));
    form_put(&query, "state", str_from(signing->login.state));
    form_put(&query, "nonce", str_from(signing->login.nonce));
    form_put(&query, "code_challenge", str_from(challenge));
    form_put(&query, "code_challenge_method", STR("S256"));
    const char *address = arena_printf(
        signing->http->arena, STR_FMT "%s" STR_FMT, STR_ARG(found->authorize),
        str_find(found->authorize, '?') >= 0 ? "&" : "?", STR_ARG(buf_view(&query)));
    buf_done(&query);
    return address;
}

static void on_found(void *ctx, const OidcDocument *found, const Error *err)
{
    Signing *signing = ctx;
    const ConsolePublic *console = signing->console;
    HttpRequest *http = signing->http;
    if (err != NULL) {
        fail(http, err);
        return;
    }
    oidc_login_new(&console->oidc->keys, http->received_at_us, &signing->login);
    console_cookie(
        console->sessions, http, cookie_name(console->sessions), signing->login.cookie,
        OIDC_LOGIN_S);
    console_go_to(http, address_of(signing, found));
}

static Signing *sign(const ConsolePublic *console, HttpRequest *http)
{
    Signing *signing = arena_zalloc(http->arena, sizeof *signing);
    signing->console = console;
    signing->http = http;
    return signing;
}

void oidc_begin(const ConsolePublic *console, HttpRequest *http)
{
    if (is_there(console, http)) {
        oidc_discover(console->oidc->provider, http->arena, on_found, sign(console, http));
    }
}

// ---- back from it ----

// The person's name in the audit log; one that does not fit there is not cut, for two may begin
// alike.
static Str name_of(const Oidc *oidc, const json_t *claims, Arena *arena)
{
    Str subject = oidc_member(claims, "sub");
    Str name = oidc->options->name_claim[0] == '\0'
                   ? STR_EMPTY
                   : console_name(oidc_member(claims, oidc->options->name_claim), arena);
    name = name.len > 0 ? name : console_name(subject, arena);
    if (name.len == 0) {
        uint8_t hash[SHA256_LEN];
        char hex[2 * NAME_BYTES + 1];
        sha256(subject, hash);
        hex_encode(hash, NAME_BYTES, hex);
        name = str_from(arena_printf(arena, "subject %s", hex));
    }
    return name;
}

static void begin_session(Signing *signing, const ConsoleUser *user)
{
    const ConsolePublic *console = signing->console;
    HttpRequest *http = signing->http;
    uint8_t state[SHA256_LEN], hash[SHA256_LEN];
    session_hash(str_from(signing->login.state), state);
    Entering *entering = console_enter(console, http, hash);
    entering->slug = "login-over";
    entering->over = "this login was used; sign in again";
    DbTxn *txn = db_txn_new(console->sessions->pool);
    entering->result = console_add_session(txn, state, hash, entering->id, user, &console->times);
    db_txn_submit(txn, console_on_entered, entering);
}

static void on_redeemed(void *ctx, const json_t *claims, const Error *err)
{
    Signing *signing = ctx;
    HttpRequest *http = signing->http;
    const Oidc *oidc = signing->console->oidc;
    ConsoleUser user = {.made_by = STR("oidc")};
    if (err != NULL && err->kind == ERROR_PERMANENT) {
        LOG(LOG_WARN, "a login by OpenID Connect was refused", log_text("request", http->id),
            log_error(err));
        console_refuse(
            http, 403, "login-refused", arena_printf(http->arena, "%s; sign in again", err->text));
    } else if (err != NULL) {
        fail(http, err);
    } else if (!oidc_roles_choose(
                   &oidc->roles, json_object_get(claims, oidc->options->groups_claim), http->arena,
                   &user.role, &user.tenants)) {
        console_refuse(
            http, 403, "no-role",
            "the identity provider knows you, and none of your groups may use this console; ask an "
            "operator (STENTOR_OIDC_ROLES)");
    } else {
        user.name = name_of(oidc, claims, http->arena);
        begin_session(signing, &user);
    }
}

// What the provider says in the place of a code.
static void refuse_error(HttpRequest *http, Str error)
{
    Error err = {0};
    const char *word = oidc_error_word(error, http->arena);
    if (str_eq(error, STR("server_error")) || str_eq(error, STR("temporarily_unavailable"))) {
        (void)error_set(&err, ERROR_TRANSIENT, "the provider says %s", word);
        fail(http, &err);
        return;
    }
    console_refuse(
        http, 403, "login-refused",
        str_eq(error, STR("access_denied"))
            ? "the identity provider says that access was denied; sign in again"
            : arena_printf(
                  http->arena, "the identity provider refuses this login (%s); sign in again",
                  word));
}

void oidc_callback(const ConsolePublic *console, HttpRequest *http)
{
    if (!is_there(console, http)) {
        return;
    }
    const Oidc *oidc = console->oidc;
    const char *name = cookie_name(console->sessions);
    Signing *signing = sign(console, http);
    Str error = http_query(http, "error"), code = http_query(http, "code");
    Str issuer = http_query(http, "iss");
    if (!oidc_login_open(
            &oidc->keys, session_secret_of(http_header(http, "Cookie"), name),
            http_query(http, "state"), http->received_at_us, &signing->login)) {
        console_refuse(
            http, 403, "login-over",
            "this login was not begun in this browser, or its ten minutes are over; sign in again");
        return;
    }
    console_cookie(console->sessions, http, name, "", 0);
    if ((issuer.len > 0 || oidc_names_issuer(oidc->provider)) &&
        !str_eq(issuer, str_from(oidc->options->issuer))) {
        console_refuse(http, 403, "login-refused", "the answer is of another identity provider");
    } else if (error.len > 0) {
        refuse_error(http, error);
    } else if (code.len == 0 || code.len > CODE_MAX) {
        console_refuse(http, 403, "login-refused", "the identity provider has sent no code");
    } else {
        const OidcCode answer = {
            arena_str(http->arena, code), str_from(signing->login.verifier),
            str_from(oidc->redirect), str_from(signing->login.nonce)};
        oidc_redeem(oidc->provider, &answer, http->arena, on_redeemed, signing);
    }
}
