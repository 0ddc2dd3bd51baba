// SPDX-License-Identifier: Apache-2.0
// What a recipient's client shows at /v1/inbox: whose inbox, and until when. Signed with
// HMAC-SHA256 under a key of the tenant that is derived from the master key, so it is checked
// without a look-up; good under each master key of the file, so that a rotation ends none. The
// inbox in it is a keyed hash, and the recipient's record, where there is one, our own id of it: it
// names no person.
#pragma once

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/codec/master_key.h"

enum {
    INBOX_TOKEN_SIZE = 256,
    INBOX_TOKEN_S_MIN = 60,
    INBOX_TOKEN_S_MAX = 3600,
    INBOX_TENANT_SIZE = 33,
    INBOX_ADDRESS_SIZE = 255, // with NUL
};

typedef struct InboxToken {
    char tenant[INBOX_TENANT_SIZE];
    uint8_t recipient[ADDRESS_HASH_LEN]; // feed_recipient()
    char recipient_id[ID_SIZE];          // whose record; "": none was known
    char address[INBOX_ADDRESS_SIZE]; // of one that the tenant has signed (inbox_signed.h); else ""
    int64_t expires_at_us;            // whole seconds
} InboxToken;

void inbox_token_make(const MasterKey *master, const InboxToken *what, char out[INBOX_TOKEN_SIZE]);

typedef enum InboxVerdict {
    INBOX_GOOD,
    INBOX_BAD,
    INBOX_EXPIRED,
    INBOX_TOO_LONG, // a signed one that would be good for longer than they may be
} InboxVerdict;

// *ret is written for INBOX_GOOD only.
InboxVerdict inbox_token_check(const MasterKey *master, Str token, int64_t now_us, InboxToken *ret);
