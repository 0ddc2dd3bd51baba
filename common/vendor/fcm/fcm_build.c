// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/fcm/fcm.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/addresses/push_address.h"
#include "common/vendor/push/push_content.h"

#define BASE_URL "https://fcm.googleapis.com"

static const char *const settings[] = {"project", NULL};

static bool takes(Str address)
{
    return push_address_kind(address) == PUSH_REGISTRATION;
}

const VendorApi fcm_api = {
    .name = "fcm",
    .channel = CHANNEL_PUSH,
    .base_url = BASE_URL,
    .settings = settings,
    .message_max = 4096,
    .recipients_max = 1,
    .http2 = true,
    .document = true,
    .takes = takes,
    .addresses = "a registration token",
    .build = fcm_build,
    .read = fcm_read,
    .test = fcm_test,
    .grant = fcm_grant,
    .granted = fcm_granted,
    .stale = fcm_stale,
};

static bool check_token(Str token, Error *err)
{
    bool good = token.len > 0 && token.len <= PUSH_TOKEN_MAX;
    for (size_t i = 0; good && i < token.len; i++) {
        good = token.ptr[i] > ' ' && token.ptr[i] < 0x7f;
    }
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "the push's 'to' is not a registration token: 1 to %d printable characters",
                       PUSH_TOKEN_MAX);
}

// Names that FCM keeps for itself (REST reference, Message.data).
static bool is_reserved(const char *name)
{
    return strcmp(name, "from") == 0 || strcmp(name, "message_type") == 0 ||
           strncmp(name, "google", 6) == 0 || strncmp(name, "gcm", 3) == 0;
}

static json_t *as_text(const json_t *value)
{
    if (json_is_string(value)) {
        return json_deep_copy(value);
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *made = json_string(text);
    free(text);
    return made;
}

// Its values are strings; what is none becomes its JSON.
static bool put_data(json_t *message, const VendorMail *push, Error *err)
{
    json_t *given = push_data(push, err);
    json_t *data = json_object();
    const char *name;
    json_t *value;
    bool good = given != NULL;
    json_object_foreach(given, name, value)
    {
        if (good && is_reserved(name)) {
            good = error_set(
                err, ERROR_PERMANENT,
                "the push's 'data' has '%.40s', a name that fcm keeps for itself", name);
        }
        vendor_json_put(data, name, as_text(value));
    }
    vendor_json_put_str(data, "nid", push->notification_id);
    vendor_json_put(message, "data", data);
    json_decref(given);
    return good;
}

static json_t *one(const char *name, Str value)
{
    json_t *object = json_object();
    vendor_json_put_str(object, name, value);
    return object;
}

static json_t *alert_of(const VendorMail *push)
{
    json_t *alert = json_object();
    vendor_json_put_some(alert, "title", push->subject);
    vendor_json_put_some(alert, "body", push->text);
    return alert;
}

static void put_android(json_t *message, const VendorMail *push, int64_t ttl_s, Arena *arena)
{
    json_t *android = one("priority", push->urgent ? STR("HIGH") : STR("NORMAL"));
    vendor_json_put_str(android, "ttl", str_from(arena_printf(arena, "%llds", (long long)ttl_s)));
    if (push_has_alert(push)) {
        vendor_json_put(android, "notification", one("tag", push_collapse_id(push)));
    }
    vendor_json_put(message, "android", android);
}

static void put_apns(json_t *message, const VendorMail *push, Arena *arena)
{
    json_t *headers = one("apns-collapse-id", push_collapse_id(push));
    if (push->expires_at_us != 0) {
        long long at_s = (long long)(push->expires_at_us / 1000000);
        vendor_json_put_str(
            headers, "apns-expiration", str_from(arena_printf(arena, "%lld", at_s)));
    }
    json_t *apns = json_object();
    vendor_json_put(apns, "headers", headers);
    vendor_json_put(message, "apns", apns);
}

static void put_web(json_t *message, const VendorMail *push, int64_t ttl_s, Arena *arena)
{
    json_t *headers = one("Topic", push_collapse_id(push));
    json_t *web = json_object();
    vendor_json_put_str(headers, "TTL", str_from(arena_printf(arena, "%lld", (long long)ttl_s)));
    vendor_json_put_str(headers, "Urgency", push->urgent ? STR("high") : STR("normal"));
    vendor_json_put(web, "headers", headers);
    if (push_has_alert(push)) {
        vendor_json_put(web, "notification", one("tag", push_collapse_id(push)));
    }
    vendor_json_put(message, "webpush", web);
}

static bool set_request(
    const VendorAccount *account, json_t *root, Arena *arena, VendorRequest *ret, Error *err)
{
    FcmAccount file = {.project = vendor_setting(account, STR("project"))};
    // The token was made of the file: reading it for each push would cost more than the rest.
    if (file.project.len == 0 && !fcm_account(account, arena, &file, err)) {
        json_decref(root);
        return false;
    }
    const char *path = arena_printf(
        arena, "/v1/projects/" STR_FMT "/messages:send",
        STR_ARG(vendor_encode(file.project, arena)));
    *ret = (VendorRequest){
        .method = "POST", .url = vendor_url(account, STR(BASE_URL), str_from(path), arena)};
    vendor_add_authorization(ret, "Bearer", account->bearer, arena);
    vendor_set_json(ret, root, arena);
    return true;
}

bool fcm_build(
    const VendorMail *push, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!push_check(&fcm_api, push, account, err) || !check_token(push->to.address, err)) {
        return false;
    }
    int64_t ttl_s = push_ttl_s(push, now_us);
    json_t *message = one("token", push->to.address);
    if (push_has_alert(push)) {
        vendor_json_put(message, "notification", alert_of(push));
    }
    if (!put_data(message, push, err)) {
        json_decref(message);
        return false;
    }
    put_android(message, push, ttl_s, arena);
    put_apns(message, push, arena);
    put_web(message, push, ttl_s, arena);
    json_t *root = json_object();
    vendor_json_put(root, "message", message);
    return set_request(account, root, arena, ret, err);
}

bool fcm_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!push_check_account(&fcm_api, account, err)) {
        return false;
    }
    json_t *root = json_object();
    vendor_json_put(root, "validate_only", json_true());
    vendor_json_put(root, "message", one("topic", STR("stentor-test")));
    return set_request(account, root, arena, ret, err);
}
