// SPDX-License-Identifier: Apache-2.0
#include "common/model/addresses/push_address.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/json_scan.h"

static bool refuse(char reason[ADDRESS_REASON_SIZE], const char *why)
{
    (void)snprintf(reason, ADDRESS_REASON_SIZE, "%s", why);
    return false;
}

static bool is_hex(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (hex_value(text.ptr[i]) < 0) {
            return false;
        }
    }
    return true;
}

PushAddressKind push_address_kind(Str address)
{
    if (str_starts(address, STR("{"))) {
        return PUSH_SUBSCRIPTION;
    }
    return address.len >= PUSH_DEVICE_MIN && is_hex(address) ? PUSH_DEVICE : PUSH_REGISTRATION;
}

static bool is_printable(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static bool check_device(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    if (text.len > PUSH_DEVICE_MAX || text.len % 2 != 0) {
        (void)snprintf(
            reason, ADDRESS_REASON_SIZE,
            "a device token of APNs has %d to %d hexadecimal digits, an even number",
            PUSH_DEVICE_MIN, PUSH_DEVICE_MAX);
        return false;
    }
    char *lower = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        lower[i] = lower[i] >= 'A' && lower[i] <= 'F' ? (char)(lower[i] - 'A' + 'a') : lower[i];
    }
    *ret = str_of(lower, text.len);
    return true;
}

// ---- a subscription ----

static Str text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

// Bytes in base64url, with or without '='.
static bool take_key(const json_t *keys, const char *name, size_t len, Str *ret)
{
    uint8_t bytes[PUSH_POINT_LEN];
    size_t got = 0;
    Str text = text_of(keys, name);
    while (str_ends(text, STR("="))) {
        text.len--;
    }
    *ret = text;
    return base64url_decode(text, bytes, sizeof bytes, &got) && got == len;
}

static bool take_parts(
    const json_t *root, Str *ret_endpoint, Str *ret_auth, Str *ret_point,
    char reason[ADDRESS_REASON_SIZE])
{
    const json_t *keys = json_object_get(root, "keys");
    *ret_endpoint = text_of(root, "endpoint");
    if (!str_starts(*ret_endpoint, STR("https://")) || !is_printable(*ret_endpoint)) {
        return refuse(reason, "a subscription's 'endpoint' must be an https URL");
    }
    if (!take_key(keys, "auth", PUSH_AUTH_LEN, ret_auth)) {
        return refuse(reason, "a subscription's 'keys.auth' must be 16 bytes in base64url");
    }
    return take_key(keys, "p256dh", PUSH_POINT_LEN, ret_point) ||
           refuse(reason, "a subscription's 'keys.p256dh' must be 65 bytes in base64url");
}

static bool write_subscription(
    Str endpoint, Str auth, Str point, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    json_t *made = json_pack(
        "{s:s%, s:{s:s%, s:s%}}", "endpoint", endpoint.ptr, endpoint.len, "keys", "auth", auth.ptr,
        auth.len, "p256dh", point.ptr, point.len);
    char *text = made != NULL ? json_dumps(made, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(made);
    bool fine = text != NULL && str_from(text).len <= PUSH_ADDRESS_MAX;
    if (fine) {
        *ret = arena_str(arena, str_from(text));
    }
    free(text);
    return fine || refuse(reason, "a subscription has at most 4096 bytes");
}

static bool check_subscription(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    JsonExcess excess;
    Str endpoint, auth, point;
    json_t *root = json_is_modest(text, &excess)
                       ? json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        return refuse(
            reason, "not a subscription: {\"endpoint\", \"keys\": {\"p256dh\", \"auth\"}}");
    }
    bool fine = take_parts(root, &endpoint, &auth, &point, reason) &&
                write_subscription(endpoint, auth, point, arena, ret, reason);
    json_decref(root);
    return fine;
}

bool push_address_check(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    Str trimmed = str_trim(text);
    if (text.len == 0 || text.len > PUSH_ADDRESS_MAX) {
        (void)snprintf(reason, ADDRESS_REASON_SIZE, "1 to %d bytes", PUSH_ADDRESS_MAX);
        return false;
    }
    if (push_address_kind(trimmed) == PUSH_SUBSCRIPTION) {
        return check_subscription(trimmed, arena, ret, reason);
    }
    if (!is_printable(text)) {
        return refuse(reason, "a push token has a character that is not printable ASCII");
    }
    if (push_address_kind(text) == PUSH_DEVICE) {
        return check_device(text, arena, ret, reason);
    }
    *ret = arena_str(arena, text);
    return true;
}
