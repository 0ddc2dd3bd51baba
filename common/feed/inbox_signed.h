// SPDX-License-Identifier: Apache-2.0
// An inbox token that a tenant's own server has signed, without asking the API:
//   <key id>.<expiry>.<to>.<signature>
// key id: "ink_" and a ULID; expiry: seconds of Unix time, decimal; to: the in-app address, UTF-8
// in base64url; signature: HMAC-SHA256 over all before the last dot, in base64url, under the key's
// secret, which is used as the text that it is. base64url is without padding. Pure.
#pragma once

#include "common/codec/hash.h"
#include "common/feed/inbox_token.h"

enum { INBOX_SIGNED_S_MAX = 86400, INBOX_SIGNED_SKEW_S = 60 };

typedef struct InboxSigned {
    Str key_id;
    Str text; // what is signed
    int64_t expires_at_us;
    char to[INBOX_ADDRESS_SIZE];
    uint8_t signature[SHA256_LEN];
} InboxSigned;

bool inbox_is_signed(Str token); // it begins as one
// The form alone; slices point into `token`. Each token has one spelling.
bool inbox_signed_read(Str token, InboxSigned *ret);
InboxVerdict inbox_signed_check(const InboxSigned *token, Str secret, int64_t now_us);
