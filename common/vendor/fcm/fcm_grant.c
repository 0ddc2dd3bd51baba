// SPDX-License-Identifier: Apache-2.0
// The access token: what the service account's file says, the call that asks, its answer.
#include <string.h>

#include "common/base/json_scan.h"
#include "common/vendor/fcm/fcm.h"
#include "common/vendor/jwt.h"
#include "common/vendor/push/push_content.h"
#include "common/vendor/vendor_read.h"

enum { CLAIMS_MAX = 4096, GRANT_S = 3600, LIFE_MIN_S = 60, LIFE_MAX_S = 86400 };

#define SCOPE "https://www.googleapis.com/auth/firebase.messaging"
#define TOKEN_URL "https://oauth2.googleapis.com/token"
#define GRANT_TYPE "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="

static void free_json(void *thing)
{
    json_decref(thing);
}

static bool need(Str value, const char *name, Error *err)
{
    return (value.len > 0 && !str_has_control(value)) ||
           error_set(err, ERROR_CONFIG, "the secret is no service account: it has no '%s'", name);
}

bool fcm_account(const VendorAccount *account, Arena *arena, FcmAccount *ret, Error *err)
{
    JsonExcess excess;
    json_t *file = json_is_modest(account->secret, &excess)
                       ? json_loadb(account->secret.ptr, account->secret.len, 0, NULL)
                       : NULL;
    if (file != NULL) {
        arena_own(arena, free_json, file);
    }
    if (!json_is_object(file)) {
        return error_set(err, ERROR_CONFIG, "the secret is no service account: it is not JSON");
    }
    Str own = vendor_setting(account, STR("project"));
    *ret = (FcmAccount){
        .project = own.len > 0 ? own : vendor_member_text(file, "project_id"),
        .email = vendor_member_text(file, "client_email"),
        .key = vendor_member_text(file, "private_key"),
        .key_id = vendor_member_text(file, "private_key_id"),
        .token_url = vendor_member_text(file, "token_uri")};
    if (ret->token_url.len == 0) {
        ret->token_url = STR(TOKEN_URL);
    }
    if (ret->key.len == 0) {
        return error_set(
            err, ERROR_CONFIG, "the secret is no service account: it has no 'private_key'");
    }
    return need(ret->project, "project_id", err) && need(ret->email, "client_email", err) &&
           need(ret->key_id, "private_key_id", err) && need(ret->token_url, "token_uri", err);
}

static bool sign(const FcmAccount *file, int64_t now_s, Arena *arena, Str *ret, Error *err)
{
    Buf header, claims;
    EVP_PKEY *key = jwt_key(JWT_RS256, file->key, err);
    if (key == NULL) {
        return false;
    }
    buf_init(&header, CLAIMS_MAX);
    buf_init(&claims, CLAIMS_MAX);
    push_claim(&header, "alg", STR("RS256"));
    push_claim(&header, "typ", STR("JWT"));
    push_claim(&header, "kid", file->key_id);
    buf_char(&header, '}');
    push_claim(&claims, "iss", file->email);
    push_claim(&claims, "scope", STR(SCOPE));
    push_claim(&claims, "aud", file->token_url);
    push_claim_int(&claims, "iat", now_s);
    push_claim_int(&claims, "exp", now_s + GRANT_S);
    buf_char(&claims, '}');
    bool fine =
        !header.full && !claims.full
            ? jwt_sign(JWT_RS256, key, buf_view(&header), buf_view(&claims), arena, ret, err)
            : error_set(err, ERROR_CONFIG, "the service account's members are too long");
    EVP_PKEY_free(key);
    buf_done(&header);
    buf_done(&claims);
    return fine;
}

bool fcm_grant(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    FcmAccount file;
    Str jwt;
    if (!vendor_check_account(&fcm_api, account, err) || !fcm_account(account, arena, &file, err) ||
        !sign(&file, now_us / 1000000, arena, &jwt, err)) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = file.token_url,
        .body = str_from(arena_printf(arena, "%s" STR_FMT, GRANT_TYPE, STR_ARG(jwt)))};
    vendor_add_header(ret, STR("Content-Type"), STR("application/x-www-form-urlencoded"));
    return true;
}

static bool refuse(const VendorAnswer *answer, const json_t *body, Arena *arena, Error *err)
{
    Str code = vendor_member_text(body, "error");
    bool ours = answer->status == 400 || answer->status == 401 || answer->status == 403;
    Str text = vendor_clean_text(code, vendor_member_text(body, "error_description"), arena);
    return error_set(
        err, ours ? ERROR_CONFIG : ERROR_TRANSIENT, "no access token: %d " STR_FMT, answer->status,
        STR_ARG(str_slice(text, 0, 150)));
}

bool fcm_granted(const VendorAnswer *answer, Arena *arena, VendorBearer *ret, Error *err)
{
    const json_t *body = vendor_answer_object(answer, arena);
    Str token = vendor_member_text(body, "access_token");
    int64_t life_s = vendor_member_int(body, "expires_in", 0);
    if (answer->status != 200) {
        return refuse(answer, body, arena, err);
    }
    if (token.len == 0 || str_has_control(token) || life_s < LIFE_MIN_S) {
        return error_set(err, ERROR_TRANSIENT, "no access token in the answer");
    }
    life_s = life_s < LIFE_MAX_S ? life_s : LIFE_MAX_S;
    *ret = (VendorBearer){
        .text = token,
        .refresh_us = answer->read_us + life_s * 800000,
        .expires_us = answer->read_us + (life_s - LIFE_MIN_S / 2) * 1000000};
    return true;
}
