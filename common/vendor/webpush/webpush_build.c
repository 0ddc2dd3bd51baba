// SPDX-License-Identifier: Apache-2.0
#include <openssl/ec.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/id.h"
#include "common/model/addresses/push_address.h"
#include "common/vendor/push/push_content.h"
#include "common/vendor/webpush/webpush.h"

enum { CLAIMS_MAX = 4096, LIFE_S = 12 * 3600, REFRESH_S = 6 * 3600, SPARE_S = 3600 };

static const char *const needs[] = {"subject", NULL};

static const char *const settings[] = {"hosts", NULL};

static bool takes(Str address)
{
    return push_address_kind(address) == PUSH_SUBSCRIPTION;
}

const VendorApi webpush_api = {
    .name = "webpush",
    .channel = CHANNEL_PUSH,
    .base_url = NULL, // the subscription says where
    .needs = needs,
    .settings = settings,
    .message_max = 2640, // 2,743 encrypted: what goes over FCM's bridge
    .recipients_max = 1,
    .document = true,
    .takes = takes,
    .addresses = "the JSON of a subscription",
    .build = webpush_build,
    .read = webpush_read,
    .sign = webpush_sign,
    .audience = webpush_audience,
};

static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

// ---- VAPID ----

static EVP_PKEY *own_key(const VendorAccount *account, Error *err)
{
    uint8_t scalar[P256_SCALAR_LEN];
    size_t len = 0;
    if (str_starts(account->secret, STR("-----BEGIN"))) {
        return jwt_key(JWT_ES256, account->secret, err);
    }
    bool fine = base64url_decode(str_trim(account->secret), scalar, sizeof scalar, &len) &&
                len == sizeof scalar;
    EVP_PKEY *key = fine ? p256_private(scalar) : NULL;
    if (key == NULL) {
        error_set(
            err, ERROR_CONFIG,
            "the secret is no VAPID key: 32 bytes of P-256 in base64url, or a key as PEM");
    }
    return key;
}

static bool check_subject(const VendorAccount *account, Error *err)
{
    Str subject = vendor_setting(account, STR("subject"));
    return str_starts(subject, STR("mailto:")) || str_starts(subject, STR("https://")) ||
           error_set(
               err, ERROR_CONFIG,
               "the setting 'subject' of the credential '" STR_FMT
               "' must begin with mailto: or https://",
               STR_ARG(account->name));
}

static bool write_token(
    const VendorAccount *account, EVP_PKEY *key, Str audience, int64_t now_s, Arena *arena,
    Str *ret, Error *err)
{
    Buf claims;
    buf_init(&claims, CLAIMS_MAX);
    push_claim(&claims, "aud", audience);
    push_claim_int(&claims, "exp", now_s + LIFE_S);
    push_claim(&claims, "sub", vendor_setting(account, STR("subject")));
    buf_char(&claims, '}');
    Str header = STR("{\"typ\":\"JWT\",\"alg\":\"ES256\"}");
    bool fine = !claims.full ? jwt_sign(JWT_ES256, key, header, buf_view(&claims), arena, ret, err)
                             : error_set(err, ERROR_CONFIG, "the setting 'subject' is too long");
    buf_done(&claims);
    return fine;
}

bool webpush_sign(
    const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
    Error *err)
{
    uint8_t point[P256_POINT_LEN];
    char text[4 * ((P256_POINT_LEN + 2) / 3) + 1];
    Str token;
    if (!vendor_check_account(&webpush_api, account, err) || !check_subject(account, err)) {
        return false;
    }
    CLEANUP(free_key) EVP_PKEY *key = own_key(account, err);
    if (key == NULL || !write_token(account, key, audience, now_us / 1000000, arena, &token, err)) {
        return false;
    }
    if (!p256_point(key, point)) {
        return error_set(err, ERROR_TRANSIENT, "openssl has no point of the key");
    }
    base64url_encode(point, sizeof point, text);
    ret->text = str_from(arena_printf(arena, "t=" STR_FMT ", k=%s", STR_ARG(token), text));
    ret->refresh_us = now_us + (int64_t)REFRESH_S * 1000000;
    ret->expires_us = now_us + (int64_t)(LIFE_S - SPARE_S) * 1000000;
    return true;
}

// ---- the request ----

static json_t *message_of(const VendorMail *push, Error *err)
{
    json_t *data = push_data(push, err);
    if (data == NULL) {
        return NULL;
    }
    json_t *message = json_object();
    vendor_json_put_some(message, "title", push->subject);
    vendor_json_put_some(message, "body", push->text);
    vendor_json_put_str(message, "tag", push_collapse_id(push));
    vendor_json_put_str(message, "nid", push->notification_id);
    if (json_object_size(data) > 0) {
        vendor_json_put(message, "data", data);
    } else {
        json_decref(data);
    }
    return message;
}

static bool encrypt(const WebPushTarget *target, Str plain, Arena *arena, Str *ret, Error *err)
{
    uint8_t salt[WEBPUSH_SALT_LEN];
    CLEANUP(free_key) EVP_PKEY *once = EVP_EC_gen("P-256");
    if (plain.len > webpush_api.message_max) {
        return error_set(
            err, ERROR_PERMANENT, "the push has %zu bytes, and webpush takes at most %zu",
            plain.len, webpush_api.message_max);
    }
    if (once == NULL) {
        return error_set(err, ERROR_TRANSIENT, "openssl made no key");
    }
    random_bytes(salt, sizeof salt);
    return webpush_encrypt(target, once, salt, plain, arena, ret, err);
}

bool webpush_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    WebPushTarget target;
    VendorRequest plain = {0};
    if (!push_check(&webpush_api, push, account, err) ||
        !webpush_target(account, push->to.address, arena, &target, err)) {
        return false;
    }
    json_t *message = message_of(push, err);
    if (message == NULL) {
        return false;
    }
    vendor_set_json(&plain, message, arena);
    *ret = (VendorRequest){.method = "POST", .url = arena_str(arena, target.endpoint)};
    if (!encrypt(&target, plain.body, arena, &ret->body, err)) {
        return false;
    }
    long long ttl_s = (long long)push_ttl_s(push, now_us);
    vendor_add_authorization(ret, "vapid", account->bearer, arena);
    vendor_add_header(ret, STR("TTL"), str_from(arena_printf(arena, "%lld", ttl_s)));
    vendor_add_header(ret, STR("Urgency"), push->urgent ? STR("high") : STR("normal"));
    vendor_add_header(ret, STR("Topic"), push_collapse_id(push));
    vendor_add_header(ret, STR("Content-Encoding"), STR("aes128gcm"));
    vendor_add_header(ret, STR("Content-Type"), STR("application/octet-stream"));
    return true;
}
