// SPDX-License-Identifier: Apache-2.0
#include "common/codec/bounce_token.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

enum {
    PREFIX_LEN = 4, // "ntf_"
    ATTEMPT_CHARS = 2,
    MARK_CHARS = 8,
    MAC_LEN = 10,
    MAC_CHARS = 16,
    SIGNED_MAX = 96,
    LABELS_MAX = 253,
};

_Static_assert(
    ULID_LEN + ATTEMPT_CHARS + MARK_CHARS + MAC_CHARS == BOUNCE_TOKEN_LEN, "the parts of a token");
_Static_assert(
    2 + BOUNCE_TOKEN_LEN + BOUNCE_OWNER_CHARS <= 64,
    "a local part has at most 64 octets (RFC 5321)");

// Crockford's alphabet, as in ULIDs, but in lower case.
static const char ALPHABET[] = "0123456789abcdefghjkmnpqrstvwxyz";

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(ALPHABET, lower(c)) : NULL;
    return at != NULL ? (int)(at - ALPHABET) : -1;
}

// Of whole groups of 5 bytes: 8 characters each, nothing left over.
static void base32_encode(const uint8_t *bytes, size_t len, char *out)
{
    for (size_t i = 0; i + 5 <= len; i += 5) {
        uint64_t group = 0;
        for (size_t k = 0; k < 5; k++) {
            group = group << 8 | bytes[i + k];
        }
        for (int k = 7; k >= 0; k--) {
            *out++ = ALPHABET[group >> (5 * k) & 31];
        }
    }
}

static bool base32_decode(Str text, uint8_t *out)
{
    for (size_t i = 0; i + 8 <= text.len; i += 8) {
        uint64_t group = 0;
        for (size_t k = 0; k < 8; k++) {
            int value = value_of(text.ptr[i + k]);
            if (value < 0) {
                return false;
            }
            group = group << 5 | (uint64_t)value;
        }
        for (int k = 4; k >= 0; k--) {
            *out++ = (uint8_t)(group >> (8 * k));
        }
    }
    return true;
}

void bounce_key(const MasterKey *master, BounceKey *ret)
{
    ret->count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < ret->count; i++) {
        master_key_derive(master, i, "stentor bounce", ret->bytes[i]);
    }
}

static void mac_of(
    const BounceKey *key, size_t index, Str tenant, Str notification_id, int32_t attempt,
    uint8_t out[MAC_LEN])
{
    char text[SIGNED_MAX];
    int len = snprintf(
        text, sizeof text, STR_FMT "|" STR_FMT "|%d", STR_ARG(tenant), STR_ARG(notification_id),
        attempt);
    uint8_t whole[SHA256_LEN];
    hmac_sha256(
        str_of(key->bytes[index], sizeof key->bytes[index]), str_of(text, (size_t)len), whole);
    memcpy(out, whole, MAC_LEN);
}

void bounce_tenant_mark(Str tenant, uint8_t out[BOUNCE_MARK_LEN])
{
    uint8_t whole[SHA256_LEN];
    sha256(tenant, whole);
    memcpy(out, whole, BOUNCE_MARK_LEN);
}

// ---- making ----

static bool check_parts(Str tenant, Str notification_id, int32_t attempt, Error *err)
{
    if (!id_is_tenant(tenant)) {
        return error_set(err, ERROR_PERMANENT, "return path: 'tenant' is not a tenant id");
    }
    if (!id_parse(notification_id, "ntf_", NULL)) {
        return error_set(
            err, ERROR_PERMANENT, "return path: 'notification_id' is not a notification id");
    }
    if (attempt < 1 || attempt > BOUNCE_ATTEMPT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "return path: 'attempt' is %d: expected 1 to %d", attempt,
            BOUNCE_ATTEMPT_MAX);
    }
    return true;
}

bool bounce_token_make(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt,
    char out[BOUNCE_TOKEN_LEN + 1], Error *err)
{
    if (!check_parts(tenant, notification_id, attempt, err)) {
        return false;
    }
    for (size_t i = 0; i < ULID_LEN; i++) {
        *out++ = lower(notification_id.ptr[PREFIX_LEN + i]);
    }
    *out++ = ALPHABET[attempt >> 5 & 31];
    *out++ = ALPHABET[attempt & 31];
    uint8_t mark[BOUNCE_MARK_LEN];
    bounce_tenant_mark(tenant, mark);
    base32_encode(mark, sizeof mark, out);
    uint8_t mac[MAC_LEN];
    mac_of(key, 0, tenant, notification_id, attempt, mac);
    base32_encode(mac, sizeof mac, out + MARK_CHARS);
    out[MARK_CHARS + MAC_CHARS] = '\0';
    return true;
}

static bool make_address(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt, const char *owner,
    Str domain, char out[BOUNCE_ADDRESS_SIZE], Error *err)
{
    char token[BOUNCE_TOKEN_LEN + 1];
    if (domain.len == 0 || domain.len > LABELS_MAX || str_has_control(domain)) {
        return error_set(err, ERROR_PERMANENT, "return path: 'bounce_domain' is not a domain");
    }
    if (!bounce_token_make(key, tenant, notification_id, attempt, token, err)) {
        return false;
    }
    (void)snprintf(out, BOUNCE_ADDRESS_SIZE, "b+%s%s@" STR_FMT, token, owner, STR_ARG(domain));
    return true;
}

bool bounce_address_make(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt, Str domain,
    char out[BOUNCE_ADDRESS_SIZE], Error *err)
{
    return make_address(key, tenant, notification_id, attempt, "", domain, out, err);
}

bool bounce_address_make_for(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt,
    const uint8_t hash[ADDRESS_HASH_LEN], Str domain, char out[BOUNCE_ADDRESS_SIZE], Error *err)
{
    char owner[BOUNCE_OWNER_CHARS + 1];
    base32_encode(hash, BOUNCE_OWNER_LEN, owner);
    owner[BOUNCE_OWNER_CHARS] = '\0';
    return make_address(key, tenant, notification_id, attempt, owner, domain, out, err);
}

// ---- reading ----

bool bounce_token_read(Str token, BounceToken *ret)
{
    if (token.len != BOUNCE_TOKEN_LEN) {
        return false;
    }
    *ret = (BounceToken){.notification_id = "ntf_"};
    for (size_t i = 0; i < ULID_LEN; i++) {
        char c = lower(token.ptr[i]);
        ret->notification_id[PREFIX_LEN + i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    int high = value_of(token.ptr[ULID_LEN]);
    int low = value_of(token.ptr[ULID_LEN + 1]);
    if (high < 0 || low < 0) {
        return false;
    }
    ret->attempt = high << 5 | low;
    Str rest = str_slice(token, ULID_LEN + ATTEMPT_CHARS, token.len);
    return id_parse(str_of(ret->notification_id, PREFIX_LEN + ULID_LEN), "ntf_", NULL) &&
           ret->attempt >= 1 && base32_decode(str_slice(rest, 0, MARK_CHARS), ret->tenant_mark) &&
           base32_decode(str_slice(rest, MARK_CHARS, rest.len), ret->mac);
}

bool bounce_address_read(Str address, BounceToken *ret, Str *ret_domain)
{
    if (address.len >= 2 && address.ptr[0] == '<' && address.ptr[address.len - 1] == '>') {
        address = str_slice(address, 1, address.len - 1);
    }
    ptrdiff_t at = str_find(address, '@');
    const ptrdiff_t bare = 2 + BOUNCE_TOKEN_LEN;
    if ((at != bare && at != bare + BOUNCE_OWNER_CHARS) || lower(address.ptr[0]) != 'b' ||
        address.ptr[1] != '+' || !bounce_token_read(str_slice(address, 2, (size_t)bare), ret)) {
        return false;
    }
    ret->has_owner = at > bare;
    if (ret->has_owner &&
        !base32_decode(str_slice(address, (size_t)bare, (size_t)at), ret->owner)) {
        return false;
    }
    if (ret_domain != NULL) {
        *ret_domain = str_slice(address, (size_t)at + 1, address.len);
    }
    return true;
}

bool bounce_token_check(const BounceKey *key, const BounceToken *token, Str tenant)
{
    if (!id_is_tenant(tenant)) {
        return false;
    }
    uint8_t mac[MAC_LEN];
    bool good = false;
    for (size_t i = 0; i < key->count; i++) {
        mac_of(key, i, tenant, str_from(token->notification_id), token->attempt, mac);
        good = CRYPTO_memcmp(mac, token->mac, MAC_LEN) == 0 || good;
    }
    uint8_t mark[BOUNCE_MARK_LEN];
    bounce_tenant_mark(tenant, mark);
    return good && memcmp(mark, token->tenant_mark, BOUNCE_MARK_LEN) == 0;
}

bool bounce_token_is_owner(const BounceToken *token, const uint8_t hash[ADDRESS_HASH_LEN])
{
    return token->has_owner && memcmp(token->owner, hash, BOUNCE_OWNER_LEN) == 0;
}
