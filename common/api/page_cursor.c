// SPDX-License-Identifier: Apache-2.0
#include "common/api/page_cursor.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

void page_keys_derive(const MasterKey *master, PageKeys *ret)
{
    ret->count = master == NULL ? 0 : master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < ret->count; i++) {
        master_key_derive(master, i, "stentor page cursor", ret->bytes[i]);
    }
}

// index: of the key; without any the first one, which is zeroes then.
static void sign(
    const PageKeys *keys, size_t index, Str binding, Str position, uint8_t mac[SHA256_LEN])
{
    uint8_t signed_bytes[SHA256_LEN + PAGE_POSITION_MAX];
    Str key = str_of(keys->bytes[index], sizeof keys->bytes[index]);
    sha256(binding, signed_bytes);
    memcpy(signed_bytes + SHA256_LEN, position.ptr, position.len);
    hmac_sha256(key, str_of(signed_bytes, SHA256_LEN + position.len), mac);
}

void page_cursor_write(const PageKeys *keys, Str binding, Str position, char out[PAGE_CURSOR_SIZE])
{
    assert(position.len > 0 && position.len <= PAGE_POSITION_MAX);
    uint8_t raw[SHA256_LEN + PAGE_POSITION_MAX];
    sign(keys, 0, binding, position, raw);
    memcpy(raw + PAGE_MAC_LEN, position.ptr, position.len);
    base64url_encode(raw, PAGE_MAC_LEN + position.len, out);
}

bool page_cursor_read(
    const PageKeys *keys, Str binding, Str cursor, uint8_t position[PAGE_POSITION_MAX],
    size_t *ret_len)
{
    uint8_t raw[PAGE_MAC_LEN + PAGE_POSITION_MAX];
    size_t len = 0;
    if (!base64url_decode(cursor, raw, sizeof raw, &len) || len <= PAGE_MAC_LEN) {
        return false;
    }
    Str held = str_of(raw + PAGE_MAC_LEN, len - PAGE_MAC_LEN);
    bool good = false;
    for (size_t i = 0; i == 0 || i < keys->count; i++) {
        uint8_t mac[SHA256_LEN];
        sign(keys, i, binding, held, mac);
        good = CRYPTO_memcmp(mac, raw, PAGE_MAC_LEN) == 0 || good;
    }
    if (good) {
        memcpy(position, held.ptr, held.len);
        *ret_len = held.len;
    }
    return good;
}
