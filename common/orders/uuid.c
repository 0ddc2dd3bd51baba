// SPDX-License-Identifier: Apache-2.0
#include "common/orders/uuid.h"

#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

static bool is_dash(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

bool uuid_read(Str text, char out[UUID_SIZE])
{
    out[0] = '\0';
    if (text.len != UUID_SIZE - 1) {
        return false;
    }
    char read[UUID_SIZE] = "";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_upper = c >= 'A' && c <= 'F';
        bool is_hex = is_upper || (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
        if (is_dash(i) ? c != '-' : !is_hex) {
            return false;
        }
        read[i] = is_upper ? (char)(c - 'A' + 'a') : c;
    }
    memcpy(out, read, UUID_SIZE);
    return true;
}

void uuid_derive(Str name, char out[UUID_SIZE])
{
    uint8_t hash[SHA256_LEN];
    char hex[33];
    sha256(name, hash);
    hash[6] = (uint8_t)(0x80 | (hash[6] & 0x0f));
    hash[8] = (uint8_t)(0x80 | (hash[8] & 0x3f));
    hex_encode(hash, 16, hex);
    size_t from = 0;
    for (size_t i = 0; i < UUID_SIZE - 1; i++) {
        out[i] = is_dash(i) ? '-' : hex[from++];
    }
    out[UUID_SIZE - 1] = '\0';
}
