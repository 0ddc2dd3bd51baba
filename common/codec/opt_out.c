// SPDX-License-Identifier: Apache-2.0
// Inside: version, channel, category (a byte each), issued at (seconds, 5 bytes, big-endian),
// length of the tenant and the tenant, ULID of the notification, 0 or 26 and ULID of the recipient,
// address hash (32), HMAC over all before it (32). Frozen: links in recipients' mailboxes hold it
// for a year.
#include "common/codec/opt_out.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

enum {
    VERSION = 1,
    TIME_LEN = 5,
    TENANT_MAX = 32,
    ID_PREFIX_LEN = 4,
    MAC_LEN = SHA256_LEN,
    RAW_MAX = 3 + TIME_LEN + 1 + TENANT_MAX + ULID_LEN + 1 + ULID_LEN + ADDRESS_HASH_LEN + MAC_LEN,
    CLOCK_SLACK_S = 86400, // a token of the future is not ours; clocks differ
};

static_assert(4 + (RAW_MAX * 4 + 2) / 3 + 1 <= OPT_OUT_TOKEN_SIZE, "a token fits its space");

static const Str PREFIX = {"oot_", 4};

void opt_out_key(const MasterKey *master, OptOutKey *ret)
{
    ret->count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < ret->count; i++) {
        master_key_derive(master, i, "stentor opt-out", ret->bytes[i]);
    }
}

static Str key_text(const OptOutKey *key, size_t index)
{
    return str_of(key->bytes[index], sizeof key->bytes[index]);
}

// ---- making ----

typedef struct Raw {
    uint8_t bytes[RAW_MAX];
    size_t len;
} Raw;

static void add(Raw *raw, const void *bytes, size_t len)
{
    memcpy(raw->bytes + raw->len, bytes, len);
    raw->len += len;
}

static void add_number(Raw *raw, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        raw->bytes[raw->len++] = (uint8_t)(number >> (8 * (width - 1 - i)));
    }
}

static void add_ulid(Raw *raw, Str id)
{
    add(raw, id.ptr + ID_PREFIX_LEN, ULID_LEN);
}

static bool check(const OptOut *what, Error *err)
{
    if (!id_is_tenant(what->tenant)) {
        return error_set(err, ERROR_PERMANENT, "opt-out: 'tenant' is not a tenant id");
    }
    if (!id_parse(what->notification_id, "ntf_", NULL)) {
        return error_set(
            err, ERROR_PERMANENT, "opt-out: 'notification_id' is not a notification id");
    }
    if (what->recipient_id.len > 0 && !id_parse(what->recipient_id, "rcp_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "opt-out: 'recipient_id' is not a recipient id");
    }
    if (channel_name(what->channel)[0] == '\0' || category_name(what->category)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "opt-out: 'channel' or 'category' is unknown");
    }
    if (what->issued_at_us < 0) {
        return error_set(err, ERROR_PERMANENT, "opt-out: 'issued_at' is negative");
    }
    return true;
}

bool opt_out_sign(
    const OptOutKey *key, const OptOut *what, char out[OPT_OUT_TOKEN_SIZE], Error *err)
{
    if (!check(what, err)) {
        return false;
    }
    Raw raw = {.len = 0};
    add_number(&raw, VERSION, 1);
    add_number(&raw, (uint64_t)what->channel, 1);
    add_number(&raw, (uint64_t)what->category, 1);
    add_number(&raw, (uint64_t)(what->issued_at_us / 1000000), TIME_LEN);
    add_number(&raw, what->tenant.len, 1);
    add(&raw, what->tenant.ptr, what->tenant.len);
    add_ulid(&raw, what->notification_id);
    add_number(&raw, what->recipient_id.len > 0 ? ULID_LEN : 0, 1);
    if (what->recipient_id.len > 0) {
        add_ulid(&raw, what->recipient_id);
    }
    add(&raw, what->address_hash, ADDRESS_HASH_LEN);
    uint8_t mac[MAC_LEN];
    hmac_sha256(key_text(key, 0), str_of(raw.bytes, raw.len), mac);
    add(&raw, mac, MAC_LEN);
    memcpy(out, PREFIX.ptr, PREFIX.len);
    base64url_encode(raw.bytes, raw.len, out + PREFIX.len);
    return true;
}

// ---- reading ----

static bool take(Str *rest, size_t len, Str *ret)
{
    if (rest->len < len) {
        return false;
    }
    *ret = str_slice(*rest, 0, len);
    *rest = str_slice(*rest, len, rest->len);
    return true;
}

static bool take_number(Str *rest, size_t width, uint64_t *ret)
{
    Str bytes;
    if (!take(rest, width, &bytes)) {
        return false;
    }
    *ret = 0;
    for (size_t i = 0; i < width; i++) {
        *ret = *ret << 8 | (uint8_t)bytes.ptr[i];
    }
    return true;
}

static bool take_id(Str *rest, const char *prefix, Arena *arena, Str *ret)
{
    Str ulid;
    if (!take(rest, ULID_LEN, &ulid)) {
        return false;
    }
    *ret = str_from(arena_printf(arena, "%s" STR_FMT, prefix, STR_ARG(ulid)));
    return true;
}

static bool parse(Str rest, Arena *arena, OptOut *ret)
{
    uint64_t version = 0;
    uint64_t channel = 0;
    uint64_t category = 0;
    uint64_t issued_s = 0;
    uint64_t length = 0;
    Str tenant;
    Str hash;
    *ret = (OptOut){.recipient_id = STR_EMPTY};
    if (!take_number(&rest, 1, &version) || version != VERSION ||
        !take_number(&rest, 1, &channel) || !take_number(&rest, 1, &category) ||
        !take_number(&rest, TIME_LEN, &issued_s) || !take_number(&rest, 1, &length) ||
        !take(&rest, (size_t)length, &tenant) ||
        !take_id(&rest, "ntf_", arena, &ret->notification_id) || !take_number(&rest, 1, &length) ||
        (length != 0 && length != ULID_LEN) ||
        (length != 0 && !take_id(&rest, "rcp_", arena, &ret->recipient_id)) ||
        !take(&rest, ADDRESS_HASH_LEN, &hash) || rest.len != 0) {
        return false;
    }
    ret->tenant = arena_str(arena, tenant);
    ret->channel = (Channel)channel;
    ret->category = (Category)category;
    ret->issued_at_us = (int64_t)issued_s * 1000000;
    memcpy(ret->address_hash, hash.ptr, ADDRESS_HASH_LEN);
    return check(ret, NULL);
}

static bool is_signed(const OptOutKey *key, const Raw *raw)
{
    uint8_t mac[MAC_LEN];
    if (raw->len <= MAC_LEN) {
        return false;
    }
    size_t body = raw->len - MAC_LEN;
    bool good = false;
    for (size_t i = 0; i < key->count; i++) {
        hmac_sha256(key_text(key, i), str_of(raw->bytes, body), mac);
        good = CRYPTO_memcmp(mac, raw->bytes + body, MAC_LEN) == 0 || good;
    }
    return good;
}

bool opt_out_verify(
    const OptOutKey *key, Str token, int64_t now_us, Arena *arena, OptOut *ret, Error *err)
{
    Raw raw;
    if (!str_starts(token, PREFIX) || token.len >= OPT_OUT_TOKEN_SIZE ||
        !base64url_decode(str_slice(token, PREFIX.len, token.len), raw.bytes, RAW_MAX, &raw.len) ||
        !is_signed(key, &raw) || !parse(str_of(raw.bytes, raw.len - MAC_LEN), arena, ret)) {
        return error_set(
            err, ERROR_PERMANENT, "the link was not made by this installation, or is incomplete");
    }
    int64_t age_s = now_us / 1000000 - ret->issued_at_us / 1000000;
    if (age_s > (int64_t)OPT_OUT_DAYS * 86400 || age_s < -(int64_t)CLOCK_SLACK_S) {
        return error_set(err, ERROR_PERMANENT, "the link is older than %d days", (int)OPT_OUT_DAYS);
    }
    return true;
}
