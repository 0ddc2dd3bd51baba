// SPDX-License-Identifier: Apache-2.0
// What authorizes calls for a while: signed here, or asked for by a call of its own (OAuth), which
// goes over HTTP/1.1. One mail asks, the others wait; while an old one is of use none waits. One
// that cannot be had is remembered for as long as none is asked for again.
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/vendor/http/http_internal.h"

typedef struct Grant {
    HttpVendor *vendor;
    Arena *arena;
    Str key, secret; // what it is asked for with: another one may be in use when it comes
    VendorRequest request;
    TransportCall call;
    AnswerBody body;
} Grant;

static void note_failed(HttpVendor *vendor, Str key, Str secret, const Error *err)
{
    vendor->no_bearer = *err;
    bearers_failed(vendor->bearers, key, secret, clock_now_us());
    LOG(LOG_WARN, "what authorizes calls of a vendor's API cannot be had",
        log_text("vendor", vendor->options.name), log_error(err));
}

static void keep(HttpVendor *vendor, Str key, Str secret, const VendorBearer *bearer)
{
    if (!bearers_put(vendor->bearers, key, secret, bearer, clock_now_us())) {
        Error err = {0};
        error_set(&err, ERROR_CONFIG, "the token is longer than %d bytes", BEARER_TEXT_MAX);
        note_failed(vendor, key, secret, &err);
    }
}

// ---- asked for ----

static void free_secret(void *secret)
{
    OPENSSL_clear_free(secret, strlen(secret));
}

static void free_grant(Grant *grant)
{
    HttpVendor *vendor = grant->vendor;
    buf_done(&grant->body.bytes);
    arena_free(grant->arena);
    vendor->granting = false;
    vendor->waits = false;
    vendor->running--;
    http_vendor_pump_soon(vendor);
}

static bool on_piece(TransportCall *call, Str bytes)
{
    return answer_body_add(&((Grant *)call->ctx)->body, bytes);
}

static void on_granted(
    TransportCall *call, const HttpAnswer *got, const VendorPair *headers, size_t count)
{
    Grant *grant = call->ctx;
    HttpVendor *vendor = grant->vendor;
    VendorBearer bearer = {0};
    Error err = got->err;
    bool answered = got->outcome == HTTP_ANSWERED;
    VendorAnswer answer = answer_of(&grant->body, got, headers, count);
    if (answered && vendor->options.api->granted(&answer, grant->arena, &bearer, &err)) {
        keep(vendor, grant->key, grant->secret, &bearer);
    } else {
        // The account's file says where it is asked for: a place that is barred is its fault.
        bool barred = !answered && got->failure == HTTP_FAILURE_BLOCKED;
        err.kind = barred ? ERROR_CONFIG : err.kind;
        note_failed(vendor, grant->key, grant->secret, &err);
        if (err.kind != ERROR_CONFIG && err.kind != ERROR_CANCELLED) {
            http_vendor_note_failure(vendor, err.text);
        }
    }
    free_grant(grant);
}

static Str own_secret(Arena *arena, Str secret)
{
    char *copy = OPENSSL_malloc(secret.len + 1);
    if (copy == NULL) {
        abort(); // memory is out
    }
    memcpy(copy, secret.ptr, secret.len);
    copy[secret.len] = '\0';
    arena_own(arena, free_secret, copy);
    return str_of(copy, secret.len);
}

static void ask(HttpVendor *vendor, Str key, const VendorAccount *account, Error *err)
{
    const HttpVendorOptions *options = &vendor->options;
    Arena *arena = arena_new(0);
    Grant *grant = arena_zalloc(arena, sizeof *grant);
    *grant = (Grant){.vendor = vendor, .arena = arena};
    if (!options->api->grant(account, clock_now_us(), arena, &grant->request, err) ||
        !http_request_check(&grant->request, err)) {
        note_failed(vendor, key, account->secret, err);
        arena_free(arena);
        return;
    }
    grant->key = arena_str(arena, key);
    grant->secret = own_secret(arena, account->secret);
    buf_init(&grant->body.bytes, VENDOR_ANSWER_MAX);
    grant->call = (TransportCall){
        .request = &grant->request,
        .arena = arena,
        .connect_ms = options->connect_ms,
        .whole_ms = options->whole_ms,
        .on_piece = on_piece,
        .on_done = on_granted,
        .ctx = grant,
    };
    vendor->granting = true;
    vendor->running++;
    options->grants.call(&options->grants, &grant->call);
}

// ---- signed here ----

static void sign(
    HttpVendor *vendor, Str key, Str audience, VendorAccount *account, Arena *arena, Error *err)
{
    VendorBearer bearer = {0};
    if (!vendor->options.api->sign(account, audience, clock_now_us(), arena, &bearer, err)) {
        note_failed(vendor, key, account->secret, err);
        return;
    }
    keep(vendor, key, account->secret, &bearer);
    account->bearer = bearer.text;
}

BearerStanding http_bearer_find(
    HttpVendor *vendor, const Mail *mail, VendorAccount *account, Arena *arena, Str *ret_key,
    Error *err)
{
    const VendorApi *api = vendor->options.api;
    bool due = false;
    Str audience =
        mail != NULL && api->audience != NULL ? api->audience(mail->content, arena) : STR_EMPTY;
    *ret_key = str_from(arena_printf(arena, "for " STR_FMT, STR_ARG(audience)));
    account->bearer = arena_str(
        arena, bearers_get(vendor->bearers, *ret_key, account->secret, clock_now_us(), &due));
    if (due && api->sign != NULL) {
        sign(vendor, *ret_key, audience, account, arena, err);
    } else if (due && !vendor->granting) {
        ask(vendor, *ret_key, account, err);
    }
    if (account->bearer.len > 0) {
        return BEARER_HERE;
    }
    if (vendor->granting) {
        return BEARER_COMING;
    }
    *err = vendor->no_bearer;
    return BEARER_NONE;
}
