// SPDX-License-Identifier: Apache-2.0
// An entry cfg.inbox_keys.<tenant>.self: the keys with which a tenant's own server signs tokens for
// inboxes (common/feed/inbox_signed.h), and those of all tenants in memory, opened. A secret is
// sealed under the tenant's key of the master key (seal.h, generation 0), for its key's id.
#pragma once

#include "common/base/id.h"
#include "common/codec/seal.h"
#include "stentor/v1/config.pb-c.h"

#define INBOX_KEYS_KIND "inbox_keys"
#define INBOX_KEYS_KEY "self"
#define INBOX_KEY_PREFIX "ink_"

enum {
    INBOX_KEYS_MAX = 4,     // of a tenant
    INBOX_SECRET_SIZE = 44, // its text, 32 bytes in base64url, with NUL
};

// ---- the entry ----

// A tenant, and one to INBOX_KEYS_MAX keys, each with an id of its own and a secret.
bool inbox_keys_are_whole(const Stentor__V1__InboxKeys *entry);
// One more, in `arena`; there must be room. *ret_secret is in no other place. Those that there are
// are sealed again, under the current master key, so that the key of before can leave the file.
Stentor__V1__InboxKey *inbox_keys_add(
    Stentor__V1__InboxKeys *entry, MasterKey *master, int64_t now_us, Arena *arena,
    char ret_secret[INBOX_SECRET_SIZE]);
// false: there is no such key.
bool inbox_keys_remove(Stentor__V1__InboxKeys *entry, Str id);

// ---- all, in memory ----

typedef struct InboxKeys InboxKeys;

typedef struct InboxKeyKnown {
    char tenant[33];
    char secret[INBOX_SECRET_SIZE];
} InboxKeyKnown;

InboxKeys *inbox_keys_new(MasterKey *master); // borrowed
void inbox_keys_free(InboxKeys *keys);        // NULL-safe
// What stands for the tenant now; an empty payload: nothing. ERROR_PERMANENT: it is no such entry,
// and the tenant's keys stay as they are; or a secret does not open, and its key signs nothing.
bool inbox_keys_put(InboxKeys *keys, Str tenant, Str payload, Error *err);
// NULL: there is none. Until the next inbox_keys_put().
const InboxKeyKnown *inbox_keys_find(const InboxKeys *keys, Str id);
