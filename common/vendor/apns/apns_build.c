// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/apns/apns.h"

#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/model/addresses/push_address.h"
#include "common/vendor/jwt.h"
#include "common/vendor/push/push_content.h"

enum { CLAIMS_MAX = 1024, BUCKET_S = 2400, LIFE_S = 3540 };

#define BASE_URL "https://api.push.apple.com"

static const char *const needs[] = {"team_id", "topic", NULL};

static bool takes(Str address)
{
    return push_address_kind(address) == PUSH_DEVICE;
}

const VendorApi apns_api = {
    .name = "apns",
    .channel = CHANNEL_PUSH,
    .base_url = BASE_URL,
    .needs = needs,
    .needs_id = true,
    .message_max = 4096,
    .recipients_max = 1,
    .http2 = true,
    .document = true,
    .takes = takes,
    .addresses = "a device token: 64 or more hexadecimal digits",
    .build = apns_build,
    .read = apns_read,
    .sign = apns_sign,
    .stale = apns_stale,
};

static bool check_token(Str token, Error *err)
{
    bool good = token.len >= PUSH_DEVICE_MIN && token.len <= PUSH_DEVICE_MAX && token.len % 2 == 0;
    for (size_t i = 0; good && i < token.len; i++) {
        good = hex_value(token.ptr[i]) >= 0;
    }
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "the push's 'to' is not a device token: %d to %d hexadecimal digits",
                       PUSH_DEVICE_MIN, PUSH_DEVICE_MAX);
}

// A UUID (RFC 9562, version 8) of this attempt: Apple gives it back, and its logs have it.
static Str apns_id(const VendorMail *push, Arena *arena)
{
    uint8_t hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    const char *cause = arena_printf(
        arena, "apns-id " STR_FMT " %d", STR_ARG(push->notification_id), (int)push->attempt);
    sha256(str_from(cause), hash);
    hash[6] = (uint8_t)((hash[6] & 0x0fU) | 0x80U);
    hash[8] = (uint8_t)((hash[8] & 0x3fU) | 0x80U);
    hex_encode(hash, sizeof hash, hex);
    return str_from(arena_printf(
        arena, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20));
}

// `aps` of the application's own data may have a badge, a sound, a category; the alert is ours.
static json_t *aps_of(const VendorMail *push, json_t *data)
{
    json_t *aps = json_deep_copy(json_object_get(data, "aps"));
    if (!json_is_object(aps)) {
        json_decref(aps);
        aps = json_object();
    }
    if (push_has_alert(push)) {
        json_t *alert = json_object();
        vendor_json_put_some(alert, "title", push->subject);
        vendor_json_put_some(alert, "body", push->text);
        vendor_json_put(aps, "alert", alert);
    } else {
        vendor_json_put(aps, "content-available", json_integer(1));
    }
    return aps;
}

static bool set_payload(VendorRequest *request, const VendorMail *push, Arena *arena, Error *err)
{
    json_t *payload = json_object();
    json_t *data = push_data(push, err);
    if (data == NULL) {
        json_decref(payload);
        return false;
    }
    vendor_json_put(payload, "aps", aps_of(push, data));
    json_object_del(data, "aps");
    vendor_json_put_str(payload, "nid", push->notification_id);
    json_object_update(payload, data);
    json_decref(data);
    vendor_set_json(request, payload, arena);
    return request->body.len <= apns_api.message_max ||
           error_set(
               err, ERROR_PERMANENT, "the push's payload has %zu bytes, and apns takes at most %zu",
               request->body.len, apns_api.message_max);
}

static void add_headers(
    VendorRequest *request, const VendorMail *push, const VendorAccount *account, Arena *arena)
{
    bool alert = push_has_alert(push);
    vendor_add_authorization(request, "bearer", account->bearer, arena);
    vendor_add_header(request, STR("apns-topic"), vendor_setting(account, STR("topic")));
    vendor_add_header(request, STR("apns-push-type"), alert ? STR("alert") : STR("background"));
    // A push that shows nothing must not have 10.
    vendor_add_header(request, STR("apns-priority"), alert && push->urgent ? STR("10") : STR("5"));
    if (push->expires_at_us != 0) {
        long long at_s = (long long)(push->expires_at_us / 1000000);
        vendor_add_header(
            request, STR("apns-expiration"), str_from(arena_printf(arena, "%lld", at_s)));
    }
    vendor_add_header(request, STR("apns-collapse-id"), push_collapse_id(push));
    vendor_add_header(request, STR("apns-id"), apns_id(push, arena));
}

bool apns_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!push_check(&apns_api, push, account, err) || !check_token(push->to.address, err)) {
        return false;
    }
    const char *path = arena_printf(arena, "/3/device/" STR_FMT, STR_ARG(push->to.address));
    *ret = (VendorRequest){
        .method = "POST", .url = vendor_url(account, STR(BASE_URL), str_from(path), arena)};
    add_headers(ret, push, account, arena);
    return set_payload(ret, push, arena, err);
}

bool apns_sign(
    const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
    Error *err)
{
    Buf header, claims;
    int64_t now_s = now_us / 1000000;
    int64_t from_s = now_s - now_s % BUCKET_S;
    (void)audience;
    if (!vendor_check_account(&apns_api, account, err)) {
        return false;
    }
    EVP_PKEY *key = jwt_key(JWT_ES256, account->secret, err);
    if (key == NULL) {
        return false;
    }
    buf_init(&header, CLAIMS_MAX);
    buf_init(&claims, CLAIMS_MAX);
    push_claim(&header, "alg", STR("ES256"));
    push_claim(&header, "kid", account->id);
    buf_char(&header, '}');
    push_claim(&claims, "iss", vendor_setting(account, STR("team_id")));
    push_claim_int(&claims, "iat", from_s);
    buf_char(&claims, '}');
    bool fine =
        !header.full && !claims.full
            ? jwt_sign(JWT_ES256, key, buf_view(&header), buf_view(&claims), arena, &ret->text, err)
            : error_set(err, ERROR_CONFIG, "the id and the setting 'team_id' are too long");
    EVP_PKEY_free(key);
    buf_done(&header);
    buf_done(&claims);
    ret->refresh_us = (from_s + BUCKET_S) * 1000000;
    ret->expires_us = (from_s + LIFE_S) * 1000000;
    return fine;
}
