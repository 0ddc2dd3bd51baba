// SPDX-License-Identifier: Apache-2.0
// Inside: version (a byte), expiry (seconds, 5 bytes, big-endian), the inbox (32), of version 2 the
// ULID of the recipient's id (26), length of the tenant and the tenant, HMAC over all before it
// (32).
#include "common/feed/inbox_token.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

enum {
    VERSION = 1,
    VERSION_OF_RECORD = 2,
    TIME_LEN = 5,
    TENANT_MAX = INBOX_TENANT_SIZE - 1,
    ID_AT = 1 + TIME_LEN + ADDRESS_HASH_LEN,
    RAW_MAX = ID_AT + ULID_LEN + 1 + TENANT_MAX + SHA256_LEN,
    PREFIX_LEN = 4,
    ID_PREFIX_LEN = 4,
};

static_assert(PREFIX_LEN + (RAW_MAX * 4 + 2) / 3 + 1 <= INBOX_TOKEN_SIZE, "a token fits");

static const char PREFIX[] = "inb_";
static const char ID_PREFIX[] = "rcp_";

static void sign(
    const MasterKey *master, size_t index, Str tenant, Str signed_part, uint8_t out[SHA256_LEN])
{
    uint8_t key[MASTER_KEY_LEN];
    uint8_t own[SHA256_LEN];
    master_key_derive(master, index, "stentor inbox", key);
    hmac_sha256(str_of(key, sizeof key), tenant, own);
    hmac_sha256(str_of(own, sizeof own), signed_part, out);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(own, sizeof own);
}

void inbox_token_make(const MasterKey *master, const InboxToken *what, char out[INBOX_TOKEN_SIZE])
{
    bool named = what->recipient_id[0] != '\0';
    uint8_t raw[RAW_MAX] = {named ? VERSION_OF_RECORD : VERSION};
    size_t tenant_len = strlen(what->tenant);
    size_t len = ID_AT;
    uint64_t seconds = (uint64_t)(what->expires_at_us / 1000000);
    for (size_t i = 0; i < TIME_LEN; i++) {
        raw[1 + i] = (uint8_t)(seconds >> (8 * (TIME_LEN - 1 - i)));
    }
    memcpy(raw + 1 + TIME_LEN, what->recipient, ADDRESS_HASH_LEN);
    if (named) {
        assert(id_parse(str_from(what->recipient_id), ID_PREFIX, NULL));
        memcpy(raw + len, what->recipient_id + ID_PREFIX_LEN, ULID_LEN);
        len += ULID_LEN;
    }
    raw[len++] = (uint8_t)tenant_len;
    memcpy(raw + len, what->tenant, tenant_len);
    len += tenant_len;
    sign(master, 0, str_of(what->tenant, tenant_len), str_of(raw, len), raw + len);
    memcpy(out, PREFIX, PREFIX_LEN);
    base64url_encode(raw, len + SHA256_LEN, out + PREFIX_LEN);
}

static bool is_signed(const MasterKey *master, const uint8_t *raw, size_t len, Str tenant)
{
    bool fits = false;
    size_t count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < count; i++) {
        uint8_t right[SHA256_LEN];
        sign(master, i, tenant, str_of(raw, len), right);
        fits |= CRYPTO_memcmp(raw + len, right, SHA256_LEN) == 0;
    }
    return fits;
}

InboxVerdict inbox_token_check(const MasterKey *master, Str token, int64_t now_us, InboxToken *ret)
{
    uint8_t raw[RAW_MAX];
    size_t len = 0;
    if (!str_starts(token, str_of(PREFIX, PREFIX_LEN)) ||
        !base64url_decode(str_slice(token, PREFIX_LEN, token.len), raw, sizeof raw, &len) ||
        len < 1 || (raw[0] != VERSION && raw[0] != VERSION_OF_RECORD)) {
        return INBOX_BAD;
    }
    size_t id_len = raw[0] == VERSION_OF_RECORD ? ULID_LEN : 0;
    size_t tenant_at = ID_AT + id_len + 1;
    if (len < tenant_at + 1 + SHA256_LEN) {
        return INBOX_BAD;
    }
    size_t tenant_len = raw[tenant_at - 1];
    Str tenant = str_of((const char *)raw + tenant_at, tenant_len);
    if (len != tenant_at + tenant_len + SHA256_LEN || !id_is_tenant(tenant) ||
        !is_signed(master, raw, len - SHA256_LEN, tenant)) {
        return INBOX_BAD;
    }
    uint64_t seconds = 0;
    for (size_t i = 0; i < TIME_LEN; i++) {
        seconds = seconds << 8 | raw[1 + i];
    }
    if ((int64_t)seconds * 1000000 <= now_us) {
        return INBOX_EXPIRED;
    }
    *ret = (InboxToken){.expires_at_us = (int64_t)seconds * 1000000};
    (void)str_to_c(tenant, ret->tenant, sizeof ret->tenant);
    memcpy(ret->recipient, raw + 1 + TIME_LEN, ADDRESS_HASH_LEN);
    if (id_len > 0) {
        memcpy(ret->recipient_id, ID_PREFIX, ID_PREFIX_LEN);
        memcpy(ret->recipient_id + ID_PREFIX_LEN, raw + ID_AT, ULID_LEN);
    }
    return INBOX_GOOD;
}
