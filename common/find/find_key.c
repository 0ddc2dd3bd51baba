// SPDX-License-Identifier: Apache-2.0
#include "common/find/find_key.h"

#include <string.h>

enum { KEY_LEN = 8, SHORT_MAX = 512 };

static int64_t key_of_hash(const uint8_t *hash)
{
    uint64_t key = 0;
    for (int i = 0; i < KEY_LEN; i++) {
        key = key << 8 | hash[i];
    }
    int64_t out;
    memcpy(&out, &key, sizeof out);
    return out;
}

static size_t append(uint8_t *out, size_t at, Str text)
{
    if (text.len > 0) {
        memcpy(out + at, text.ptr, text.len);
    }
    return at + text.len;
}

int64_t find_key(const MasterKey *master, FindKind kind, Str tenant, Str value)
{
    if (kind == FIND_ADDRESS && value.len >= KEY_LEN) {
        return key_of_hash((const uint8_t *)value.ptr);
    }
    uint8_t text[SHORT_MAX];
    uint8_t digest[SHA256_LEN];
    const char head[] = {'f', 'i', 'n', 'd', '|', (char)('0' + kind), '|'};
    if (value.len > SHA256_LEN * 8) { // what is longer counts by its digest
        sha256(value, digest);
        value = str_of(digest, sizeof digest);
    }
    size_t len = append(text, 0, str_of(head, sizeof head));
    len = append(text, len, str_slice(tenant, 0, SHA256_LEN));
    text[len++] = '|';
    len = append(text, len, value);
    uint8_t hash[SHA256_LEN];
    hmac_sha256(master_oldest_hash_key(master), str_of(text, len), hash);
    return key_of_hash(hash);
}

bool find_is_end(Status status)
{
    return status == STATUS_FAILED || status == STATUS_BOUNCED || status == STATUS_SUPPRESSED ||
           status == STATUS_COMPLAINED;
}

bool find_is_own_message_id(Str vendor_message_id, Str notification_id)
{
    return str_starts(vendor_message_id, notification_id) &&
           vendor_message_id.len > notification_id.len &&
           vendor_message_id.ptr[notification_id.len] == '@';
}
