// SPDX-License-Identifier: Apache-2.0
#include "common/codec/inbound_capability.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

enum { RAW_LEN = 24, TEXT_SIZE = 160 };

static void make(
    const MasterKey *master, size_t index, Str tenant, Str vendor,
    char out[INBOUND_CAPABILITY_SIZE])
{
    uint8_t key[MASTER_KEY_LEN];
    uint8_t mac[SHA256_LEN];
    char text[TEXT_SIZE];
    master_key_derive(master, index, "stentor inbound", key);
    int len = snprintf(
        text, sizeof text, STR_FMT "|" STR_FMT, STR_ARG(str_slice(tenant, 0, 64)),
        STR_ARG(str_slice(vendor, 0, 64)));
    hmac_sha256(str_of(key, sizeof key), str_of(text, (size_t)len), mac);
    OPENSSL_cleanse(key, sizeof key);
    base64url_encode(mac, RAW_LEN, out);
}

void inbound_capability(
    const MasterKey *master, Str tenant, Str vendor, char out[INBOUND_CAPABILITY_SIZE])
{
    make(master, 0, tenant, vendor, out);
}

bool inbound_capability_fits(const MasterKey *master, Str tenant, Str vendor, Str given)
{
    bool fits = false;
    size_t count = master_key_count(master, KEY_MASTER);
    for (size_t i = 0; i < count; i++) {
        char right[INBOUND_CAPABILITY_SIZE];
        make(master, i, tenant, vendor, right);
        fits |= given.len == INBOUND_CAPABILITY_LEN &&
                CRYPTO_memcmp(given.ptr, right, INBOUND_CAPABILITY_LEN) == 0;
    }
    return fits;
}
