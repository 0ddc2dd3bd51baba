// SPDX-License-Identifier: Apache-2.0
// A login, in the order in which things happen: oidc_discover, then after the callback oidc_redeem,
// on_discovered, on_token, on_keys and once more, where a key is not known, on_keys.
#include "services/gateway/access/oidc/oidc_provider.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/http/client/http_client.h"
#include "common/storage/sigv4.h"
#include "common/vendor/form.h"
#include "common/vendor/vendor_build.h"

#define WELL_KNOWN "/.well-known/openid-configuration"

enum { WHOLE_MS = 5000, FORM_MAX = 64 * 1024, CALLS_MAX = 16 };

static const int64_t KEPT_US = INT64_C(3600) * 1000000, KEYS_AGAIN_US = INT64_C(10) * 1000000;

typedef struct Waiting {
    void (*go_on)(void *ctx, const Error *err);
    void *ctx;
    struct Waiting *next;
} Waiting;

// What is fetched by GET and kept.
typedef struct Kept {
    Arena *arena;            // of what came last, which stays until something newer is there
    int64_t at_us, until_us; // monotonic: when the last call for it began; until when it is used
    Waiting *waiting;
    bool asking;
} Kept;

struct OidcProvider {
    const OidcOptions *options;
    HttpGuard guard;
    HttpClient *http;
    Kept document, keys;
    OidcDocument found; // in document.arena
    Str key_set;        // in keys.arena
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// ---- one call ----

typedef void (*Fetched)(void *ctx, int status, Str body, const Error *err);

typedef struct Fetch {
    Buf body;
    const char *what; // "its keys"
    Fetched done;
    void *ctx;
} Fetch;

static bool on_http_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    Fetch *fetch = ctx;
    return buf_append(&fetch->body, bytes, len);
}

static void on_http_done(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    (void)call;
    Fetch *fetch = ctx;
    Error err = {0};
    if (answer->outcome != HTTP_ANSWERED) {
        err = answer->err;
        (void)error_wrap(&err, "the provider was asked for %s", fetch->what);
    } else if (answer->stopped) {
        (void)error_set(
            &err, ERROR_TRANSIENT, "the provider was asked for %s and answers more than %zu bytes",
            fetch->what, fetch->body.max);
    }
    fetch->done(
        fetch->ctx, answer->status, buf_view(&fetch->body), err.kind == ERROR_NONE ? NULL : &err);
    buf_done(&fetch->body);
    free(fetch);
}

static void fetch(
    OidcProvider *provider, HttpCallOptions *call, const char *what, size_t max, Fetched done,
    void *ctx)
{
    Fetch *made = xcalloc(1, sizeof *made);
    *made = (Fetch){.what = what, .done = done, .ctx = ctx};
    buf_init(&made->body, max);
    call->whole_ms = WHOLE_MS;
    call->answer_max = (int64_t)max + 1; // the guard's own bound is less than a set of keys
    call->on_piece = on_http_piece;
    call->on_done = on_http_done;
    call->ctx = made;
    (void)http_call(provider->http, call);
}

// ---- what is kept ----

static bool is_kept(const Kept *kept)
{
    return !kept->asking && clock_mono_us() < kept->until_us;
}

static void wait_for(
    Kept *kept, Arena *arena, void (*go_on)(void *ctx, const Error *err), void *ctx)
{
    Waiting *waiting = arena_zalloc(arena, sizeof *waiting);
    *waiting = (Waiting){go_on, ctx, kept->waiting};
    kept->waiting = waiting;
}

// Those that wait now: one that goes on may wait again.
static void release(Kept *kept, const Error *err)
{
    Waiting *waiting = kept->waiting;
    kept->waiting = NULL;
    kept->asking = false;
    while (waiting != NULL) {
        Waiting *next = waiting->next; // it may be gone with its arena
        waiting->go_on(waiting->ctx, err);
        waiting = next;
    }
}

static void keep(Kept *kept, Arena *arena)
{
    arena_free(kept->arena);
    kept->arena = arena;
    kept->until_us = kept->at_us + KEPT_US;
    release(kept, NULL);
}

// The next login asks again.
static void lose(Kept *kept, const Error *err)
{
    kept->until_us = 0;
    release(kept, err);
}

static void ask(
    OidcProvider *provider, Kept *kept, Str url, const char *what, size_t max, Fetched done)
{
    if (kept->asking) {
        return;
    }
    char *address = xmalloc(url.len + 1);
    (void)str_to_c(url, address, url.len + 1);
    kept->asking = true;
    kept->at_us = clock_mono_us();
    HttpCallOptions call = {
        .method = "GET", .url = address, .headers = {{"Accept", "application/json"}}};
    fetch(provider, &call, what, max, done, provider);
    free(address);
}

static bool is_good(int status, const char *what, const Error *err, Error *ret)
{
    if (err != NULL) {
        *ret = *err;
    } else if (status != 200) {
        (void)error_set(
            ret, ERROR_TRANSIENT, "the provider was asked for %s and answers %d", what, status);
    }
    return err == NULL && status == 200;
}

static void on_document(void *ctx, int status, Str body, const Error *call_err)
{
    OidcProvider *provider = ctx;
    Error err = {0};
    Arena *arena = arena_new(0);
    OidcDocument found = {0};
    if (is_good(status, "its discovery document", call_err, &err) &&
        oidc_document_read(
            body, str_from(provider->options->issuer), &provider->guard, arena, &found, &err)) {
        provider->found = found;
        keep(&provider->document, arena);
    } else {
        arena_free(arena);
        lose(&provider->document, &err);
    }
}

static void on_key_set(void *ctx, int status, Str body, const Error *call_err)
{
    OidcProvider *provider = ctx;
    Error err = {0};
    if (is_good(status, "its keys", call_err, &err) && oidc_keys_check(body, &err)) {
        Arena *arena = arena_new(0);
        provider->key_set = arena_str(arena, body);
        keep(&provider->keys, arena);
    } else {
        lose(&provider->keys, &err);
    }
}

static void want_document(
    OidcProvider *provider, Arena *arena, void (*go_on)(void *ctx, const Error *err), void *ctx)
{
    if (is_kept(&provider->document)) {
        go_on(ctx, NULL);
        return;
    }
    Str issuer = str_from(provider->options->issuer);
    issuer = str_ends(issuer, STR("/")) ? str_slice(issuer, 0, issuer.len - 1) : issuer;
    char *url = arena_printf(arena, STR_FMT WELL_KNOWN, STR_ARG(issuer));
    wait_for(&provider->document, arena, go_on, ctx);
    ask(provider, &provider->document, str_from(url), "its discovery document", OIDC_DOCUMENT_MAX,
        on_document);
}

static void want_keys(
    OidcProvider *provider, Arena *arena, void (*go_on)(void *ctx, const Error *err), void *ctx)
{
    if (is_kept(&provider->keys)) {
        go_on(ctx, NULL);
        return;
    }
    wait_for(&provider->keys, arena, go_on, ctx);
    ask(provider, &provider->keys, provider->found.keys, "its keys", ID_KEYS_MAX, on_key_set);
}

// ---- discovery ----

typedef struct Discovery {
    OidcProvider *provider;
    OidcFound on_found;
    void *ctx;
} Discovery;

static void on_waited(void *ctx, const Error *err)
{
    const Discovery *discovery = ctx;
    discovery->on_found(discovery->ctx, err == NULL ? &discovery->provider->found : NULL, err);
}

void oidc_discover(OidcProvider *provider, Arena *arena, OidcFound on_found, void *ctx)
{
    Discovery *discovery = arena_zalloc(arena, sizeof *discovery);
    *discovery = (Discovery){provider, on_found, ctx};
    want_document(provider, arena, on_waited, discovery);
}

bool oidc_names_issuer(const OidcProvider *provider)
{
    return provider->found.names_issuer;
}

// ---- a code ----

typedef struct Redeeming {
    OidcProvider *provider;
    OidcCode code;
    Arena *arena;
    Str form, id_token;
    int64_t began_us;
    OidcRedeemed on_redeemed;
    void *ctx;
} Redeeming;

static void end(const Redeeming *redeeming, const json_t *claims, const Error *err)
{
    redeeming->on_redeemed(redeeming->ctx, claims, err);
}

static void on_keys(void *ctx, const Error *err);

// Newer keys may have it. What was fetched for this login is as new as can be.
static void go_on_without_key(Redeeming *redeeming, Error *err)
{
    OidcProvider *provider = redeeming->provider;
    int64_t at_us = provider->keys.at_us;
    if (provider->keys.asking || clock_mono_us() - at_us >= KEYS_AGAIN_US) {
        wait_for(&provider->keys, redeeming->arena, on_keys, redeeming);
        ask(provider, &provider->keys, provider->found.keys, "its keys", ID_KEYS_MAX, on_key_set);
        return;
    }
    err->kind = at_us >= redeeming->began_us ? ERROR_PERMANENT : ERROR_TRANSIENT;
    end(redeeming, NULL, err);
}

static void on_keys(void *ctx, const Error *keys_err)
{
    Redeeming *redeeming = ctx;
    Error err = {0};
    if (keys_err != NULL) {
        end(redeeming, NULL, keys_err);
        return;
    }
    const OidcOptions *options = redeeming->provider->options;
    const IdTokenWanted wanted = {
        str_from(options->issuer), str_from(options->client_id), redeeming->code.nonce,
        clock_now_us()};
    json_t *claims = id_token_check(
        redeeming->id_token, redeeming->provider->key_set, &wanted, redeeming->arena, &err);
    if (claims != NULL) {
        end(redeeming, claims, NULL);
        json_decref(claims);
    } else if (err.kind == ERROR_TRANSIENT) {
        go_on_without_key(redeeming, &err);
    } else {
        end(redeeming, NULL, &err);
    }
}

static void on_token(void *ctx, int status, Str body, const Error *call_err)
{
    Redeeming *redeeming = ctx;
    Error err = {0};
    if (call_err != NULL) {
        end(redeeming, NULL, call_err);
    } else if (oidc_answer_read(status, body, redeeming->arena, &redeeming->id_token, &err)) {
        want_keys(redeeming->provider, redeeming->arena, on_keys, redeeming);
    } else {
        end(redeeming, NULL, &err);
    }
}

// RFC 6749, 2.3.1: both are encoded first.
static const char *basic_of(const OidcOptions *options, Arena *arena)
{
    Buf pair;
    buf_init(&pair, FORM_MAX);
    sigv4_encode(str_from(options->client_id), false, &pair);
    buf_char(&pair, ':');
    sigv4_encode(str_from(options->client_secret), false, &pair);
    Str text = vendor_base64(buf_view(&pair), arena);
    buf_done(&pair);
    return arena_printf(arena, "Basic " STR_FMT, STR_ARG(text));
}

static void post_code(Redeeming *redeeming)
{
    OidcProvider *provider = redeeming->provider;
    const OidcOptions *options = provider->options;
    bool secret = options->client_secret[0] != '\0';
    bool basic = secret && provider->found.basic;
    Buf form;
    buf_init(&form, FORM_MAX);
    form_put(&form, "grant_type", STR("authorization_code"));
    form_put(&form, "code", redeeming->code.code);
    form_put(&form, "redirect_uri", redeeming->code.redirect);
    form_put(&form, "code_verifier", redeeming->code.verifier);
    if (!basic) {
        form_put(&form, "client_id", str_from(options->client_id));
    }
    if (secret && !basic) {
        form_put(&form, "client_secret", str_from(options->client_secret));
    }
    redeeming->form = arena_str(redeeming->arena, buf_view(&form));
    buf_done(&form);
    HttpCallOptions call = {
        .method = "POST",
        .url = arena_cstr(redeeming->arena, provider->found.token),
        .headers =
            {{"Content-Type", "application/x-www-form-urlencoded"},
             {"Accept", "application/json"},
             {basic ? "Authorization" : NULL, basic ? basic_of(options, redeeming->arena) : NULL}},
        .body = redeeming->form.ptr,
        .body_len = redeeming->form.len,
    };
    fetch(provider, &call, "an ID token", OIDC_ANSWER_MAX, on_token, redeeming);
}

static void on_discovered(void *ctx, const Error *err)
{
    Redeeming *redeeming = ctx;
    if (err != NULL) {
        end(redeeming, NULL, err);
    } else {
        post_code(redeeming);
    }
}

void oidc_redeem(
    OidcProvider *provider, const OidcCode *code, Arena *arena, OidcRedeemed on_redeemed, void *ctx)
{
    Redeeming *redeeming = arena_zalloc(arena, sizeof *redeeming);
    *redeeming = (Redeeming){
        .provider = provider,
        .code = *code,
        .arena = arena,
        .began_us = clock_mono_us(),
        .on_redeemed = on_redeemed,
        .ctx = ctx,
    };
    want_document(provider, arena, on_discovered, redeeming);
}

// ---- life ----

OidcProvider *oidc_provider_new(uv_loop_t *loop, const OidcOptions *options, Error *err)
{
    GuardedUrl ignored;
    OidcProvider *provider = xcalloc(1, sizeof *provider);
    provider->options = options;
    // Who says who is an operator is the operator's own, wherever it runs.
    provider->guard = (HttpGuard){.allow_private = true, .allow_loopback = true};
    bool good = guard_url(&provider->guard, options->issuer, &ignored, err) &&
                (strpbrk(options->issuer, "?#") == NULL ||
                 error_set(err, ERROR_CONFIG, "an issuer has neither '?' nor '#'"));
    const HttpClientOptions client = {
        .calls = CALLS_MAX,
        .ca_file = options->ca_file[0] != '\0' ? options->ca_file : NULL,
        .guard = &provider->guard,
    };
    provider->http = good ? http_client_new(loop, &client, err) : NULL;
    if (provider->http == NULL) {
        free(provider);
        return NULL;
    }
    return provider;
}

static void on_http_freed(void *ctx)
{
    OidcProvider *provider = ctx;
    arena_free(provider->document.arena);
    arena_free(provider->keys.arena);
    provider->on_freed(provider->freed_ctx);
    free(provider);
}

void oidc_provider_free(OidcProvider *provider, void (*on_freed)(void *ctx), void *ctx)
{
    provider->on_freed = on_freed;
    provider->freed_ctx = ctx;
    http_client_free(provider->http, on_http_freed, provider);
}
