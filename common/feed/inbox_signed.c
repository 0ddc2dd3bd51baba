// SPDX-License-Identifier: Apache-2.0
#include "common/feed/inbox_signed.h"

#include <openssl/crypto.h>
#include <string.h>

#include "common/base/id.h"

enum { SECONDS_DIGITS_MAX = 11 };

#define KEY_PREFIX "ink_" // INBOX_KEY_PREFIX

bool inbox_is_signed(Str token)
{
    return str_starts(token, STR(KEY_PREFIX));
}

static bool read_seconds(Str text, int64_t *ret_us)
{
    int64_t seconds = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.ptr[i])) {
            return false;
        }
    }
    bool good = text.len > 0 && text.len <= SECONDS_DIGITS_MAX && text.ptr[0] != '0' &&
                str_to_i64(text, &seconds);
    *ret_us = seconds * 1000000;
    return good;
}

static bool read_address(Str text, char out[INBOX_ADDRESS_SIZE])
{
    size_t len = 0;
    bool good = base64url_decode(text, (uint8_t *)out, INBOX_ADDRESS_SIZE - 1, &len) && len > 0;
    out[good ? len : 0] = '\0';
    return good && strlen(out) == len;
}

bool inbox_signed_read(Str token, InboxSigned *ret)
{
    Str rest = token, id = STR_EMPTY, seconds = STR_EMPTY, to = STR_EMPTY;
    size_t len = 0;
    InboxSigned read = {.key_id = STR_EMPTY};
    bool good = str_split(&rest, '.', &id) && str_split(&rest, '.', &seconds) &&
                str_split(&rest, '.', &to) && id_parse(id, KEY_PREFIX, NULL) &&
                read_seconds(seconds, &read.expires_at_us) && read_address(to, read.to) &&
                base64url_decode(rest, read.signature, sizeof read.signature, &len) &&
                len == sizeof read.signature;
    if (good) {
        read.key_id = id;
        read.text = str_slice(token, 0, token.len - rest.len - 1);
        *ret = read;
    }
    return good;
}

InboxVerdict inbox_signed_check(const InboxSigned *token, Str secret, int64_t now_us)
{
    uint8_t right[SHA256_LEN];
    int64_t latest_us = now_us + (INBOX_SIGNED_S_MAX + INBOX_SIGNED_SKEW_S) * INT64_C(1000000);
    hmac_sha256(secret, token->text, right);
    if (CRYPTO_memcmp(right, token->signature, sizeof right) != 0) {
        return INBOX_BAD;
    }
    if (token->expires_at_us <= now_us) {
        return INBOX_EXPIRED;
    }
    return token->expires_at_us > latest_us ? INBOX_TOO_LONG : INBOX_GOOD;
}
