// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/oidc/oidc_answers.h"

#include "services/gateway/access/oidc/id_token.h"
#include "services/gateway/access/oidc/oidc_json.h"

enum { WORD_MAX = 40, URL_MAX = 2048, METHODS_MAX = 32 };

// ---- the document ----

static bool take_url(
    const json_t *json, const char *name, const HttpGuard *guard, Arena *arena, Str *ret,
    Error *err)
{
    GuardedUrl ignored;
    Str url = oidc_member(json, name);
    if (url.len == 0 || url.len > URL_MAX || str_find(url, '#') >= 0 ||
        !guard_url(guard, arena_cstr(arena, url), &ignored, NULL)) {
        return error_set(
            err, ERROR_CONFIG,
            "the provider's %s is no address: https://, or http:// of this machine", name);
    }
    *ret = arena_str(arena, url);
    return true;
}

// Without the list it is client_secret_basic (Discovery, 3).
static bool takes_basic(const json_t *json)
{
    const json_t *list = json_object_get(json, "token_endpoint_auth_methods_supported");
    bool basic = !json_is_array(list);
    for (size_t i = 0; i < json_array_size(list) && i < METHODS_MAX; i++) {
        const char *method = json_string_value(json_array_get(list, i));
        basic |= str_eq(str_from(method), STR("client_secret_basic"));
    }
    return basic;
}

static bool take_document(
    const json_t *json, Str issuer, const HttpGuard *guard, Arena *arena, OidcDocument *ret,
    Error *err)
{
    if (!str_eq(oidc_member(json, "issuer"), issuer)) {
        return error_set(
            err, ERROR_CONFIG,
            "the provider calls itself another issuer than STENTOR_OIDC_ISSUER, which must be the "
            "same to the letter");
    }
    ret->basic = takes_basic(json);
    ret->names_issuer =
        json_is_true(json_object_get(json, "authorization_response_iss_parameter_supported"));
    return take_url(json, "authorization_endpoint", guard, arena, &ret->authorize, err) &&
           take_url(json, "token_endpoint", guard, arena, &ret->token, err) &&
           take_url(json, "jwks_uri", guard, arena, &ret->keys, err);
}

bool oidc_document_read(
    Str text, Str issuer, const HttpGuard *guard, Arena *arena, OidcDocument *ret, Error *err)
{
    json_t *json = text.len <= OIDC_DOCUMENT_MAX ? oidc_object(text) : NULL;
    bool good =
        json != NULL
            ? take_document(json, issuer, guard, arena, ret, err)
            : error_set(err, ERROR_TRANSIENT, "the provider's discovery document cannot be read");
    json_decref(json);
    return good;
}

bool oidc_keys_check(Str text, Error *err)
{
    json_t *json = text.len <= ID_KEYS_MAX ? oidc_object(text) : NULL;
    bool good = json_is_array(json_object_get(json, "keys"));
    json_decref(json);
    return good || error_set(err, ERROR_TRANSIENT, "the provider's keys cannot be read");
}

// ---- the answer to a code ----

const char *oidc_error_word(Str code, Arena *arena)
{
    bool plain = code.len > 0 && code.len <= WORD_MAX;
    for (size_t i = 0; plain && i < code.len; i++) {
        plain = (code.ptr[i] >= 'a' && code.ptr[i] <= 'z') || code.ptr[i] == '_';
    }
    return plain ? arena_cstr(arena, code) : "unknown";
}

static bool take_refusal(int status, const json_t *json, Arena *arena, Error *err)
{
    Str code = oidc_member(json, "error");
    if (str_eq(code, STR("invalid_grant"))) {
        return error_set(
            err, ERROR_PERMANENT, "the provider does not take this login's code (any more)");
    }
    bool ours = status >= 400 && status < 500 && status != 408 && status != 429;
    return error_set(
        err, ours ? ERROR_CONFIG : ERROR_TRANSIENT, "the provider answers a code with %d (%s)",
        status, oidc_error_word(code, arena));
}

bool oidc_answer_read(int status, Str text, Arena *arena, Str *ret_id_token, Error *err)
{
    json_t *json = text.len <= OIDC_ANSWER_MAX ? oidc_object(text) : NULL;
    Str token = json == NULL ? STR_EMPTY : oidc_member(json, "id_token");
    bool good = status == 200 && token.len > 0 && token.len <= ID_TOKEN_MAX;
    if (good) {
        *ret_id_token = arena_str(arena, token);
    } else if (status == 200) {
        (void)error_set(err, ERROR_TRANSIENT, "the provider's answer to a code has no ID token");
    } else {
        (void)take_refusal(status, json, arena, err);
    }
    json_decref(json);
    return good;
}
