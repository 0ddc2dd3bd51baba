// SPDX-License-Identifier: Apache-2.0
// links: stentor_feed
// Any bytes as an inbox token that a tenant has signed: refused, or read, and then it is the token
// that its parts make; and the same bytes as the address of a token that is made, which is good
// until it ends and in no altered form.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/feed/inbox_signed.h"

#define NOW_S 1795000000
#define SECRET STR("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")

enum { TOKEN_SIZE = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void write_token(Str id, int64_t seconds, Str to, const uint8_t *mac, char out[TOKEN_SIZE])
{
    char address[400], signature[48];
    uint8_t own[SHA256_LEN];
    base64url_encode(to.ptr, to.len, address);
    int len = snprintf(out, TOKEN_SIZE, STR_FMT ".%lld.%s", STR_ARG(id), (long long)seconds, address);
    if (mac == NULL) {
        hmac_sha256(SECRET, str_of(out, (size_t)len), own);
        mac = own;
    }
    base64url_encode(mac, SHA256_LEN, signature);
    (void)snprintf(out + len, TOKEN_SIZE - (size_t)len, ".%s", signature);
}

static void try_any(Str token)
{
    InboxSigned read;
    char again[TOKEN_SIZE];
    if (!inbox_signed_read(token, &read)) {
        return;
    }
    require(inbox_is_signed(token) && strlen(read.to) < INBOX_ADDRESS_SIZE);
    write_token(read.key_id, read.expires_at_us / 1000000, str_from(read.to), read.signature, again);
    require(str_eq(str_from(again), token));
}

static void try_made(Str to, unsigned altered)
{
    InboxSigned read;
    char text[TOKEN_SIZE];
    const int64_t now_us = NOW_S * INT64_C(1000000);
    bool fits = to.len > 0 && memchr(to.ptr, '\0', to.len) == NULL;
    write_token(STR("ink_01M8DZ0000000000000000000A"), NOW_S + 900, to, NULL, text);
    require(inbox_signed_read(str_from(text), &read) == fits);
    if (!fits) {
        return;
    }
    require(str_eq(str_from(read.to), to));
    require(inbox_signed_check(&read, SECRET, now_us) == INBOX_GOOD);
    require(inbox_signed_check(&read, SECRET, now_us + 900000000) == INBOX_EXPIRED);
    require(inbox_signed_check(&read, SECRET, now_us - 86400000000) == INBOX_TOO_LONG);
    require(inbox_signed_check(&read, STR("another"), now_us) == INBOX_BAD);
    size_t at = altered % strlen(text);
    text[at] = text[at] == 'A' ? 'B' : 'A';
    require(!inbox_signed_read(str_from(text), &read) ||
            inbox_signed_check(&read, SECRET, now_us) == INBOX_BAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str bytes = str_of(data, size);
    if (size > 4096) {
        return 0;
    }
    try_any(bytes);
    try_made(str_slice(bytes, 0, INBOX_ADDRESS_SIZE - 1), size > 0 ? data[size - 1] * 7U : 0);
    return 0;
}
