// SPDX-License-Identifier: Apache-2.0
// What a return path carries, "b+<token>@<bounce domain>" (VERP): which notification, which attempt
// and whose, and a MAC, so that a bounce is matched without trusting what it says. 52 characters of
// Crockford's base32 in lower case, read in either case, because servers on the way may change it:
// ULID of the notification (26), attempt (2: 10 bits), mark of the tenant (8: the first 40 bits of
// SHA-256 of its id), the first 80 bits of HMAC-SHA256 (16) under a key derived from the master key
// over "<tenant>|<notification id>|<attempt>". A tenant's id may be longer than a local part
// allows, so whoever reads a token finds its tenant by the mark, among those that it knows, and
// then checks. Behind the token may stand the mark of the address that the mail went to (8: the
// first 40 bits of its keyed hash, common/codec/hash.h): a bounce that names another address says
// nothing about this one. It needs no MAC: who does not know the hash key cannot make another
// address's. Pure.
#pragma once

#include "common/base/error.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/codec/master_key.h"

enum {
    BOUNCE_TOKEN_LEN = 52,
    BOUNCE_MARK_LEN = 5,
    BOUNCE_OWNER_LEN = 5,
    BOUNCE_OWNER_CHARS = 8,
    BOUNCE_ATTEMPT_MAX = 1023,
    BOUNCE_ADDRESS_SIZE = 2 + BOUNCE_TOKEN_LEN + BOUNCE_OWNER_CHARS + 1 + 253 + 1,
};

// One for each master key of the file: the current one signs, each verifies.
typedef struct BounceKey {
    uint8_t bytes[MASTER_KEYS_MAX][SHA256_LEN];
    size_t count;
} BounceKey;

// As read, not checked yet.
typedef struct BounceToken {
    char notification_id[ID_SIZE]; // "ntf_..."
    int32_t attempt;
    uint8_t tenant_mark[BOUNCE_MARK_LEN];
    uint8_t mac[10];
    bool has_owner;
    uint8_t owner[BOUNCE_OWNER_LEN]; // mark of the address; not covered by the MAC
} BounceToken;

void bounce_key(const MasterKey *master, BounceKey *ret);

// out: the token and a NUL. ERROR_PERMANENT names the field that does not fit.
bool bounce_token_make(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt,
    char out[BOUNCE_TOKEN_LEN + 1], Error *err);
// "b+<token>@<domain>". ERROR_PERMANENT names the field.
bool bounce_address_make(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt, Str domain,
    char out[BOUNCE_ADDRESS_SIZE], Error *err);
// "b+<token><mark of the address>@<domain>", for the mail to the address of that hash.
bool bounce_address_make_for(
    const BounceKey *key, Str tenant, Str notification_id, int32_t attempt,
    const uint8_t hash[ADDRESS_HASH_LEN], Str domain, char out[BOUNCE_ADDRESS_SIZE], Error *err);

// false: it has not the form of a token, in either case.
bool bounce_token_read(Str token, BounceToken *ret);
// The token in an address, with or without <>; false: its local part is not "b+" and a token, with
// or without an address's mark.
// *ret_domain (may be NULL) is a slice of the address.
bool bounce_address_read(Str address, BounceToken *ret, Str *ret_domain);

// Is `mark` (of a token) this tenant's? Two tenants may share one: check() decides.
void bounce_tenant_mark(Str tenant, uint8_t out[BOUNCE_MARK_LEN]);
// Was it made here for this tenant? Takes the same time whatever was altered.
bool bounce_token_check(const BounceKey *key, const BounceToken *token, Str tenant);
// Is it the hash of the address that the mail went to? false also where the token does not say.
bool bounce_token_is_owner(const BounceToken *token, const uint8_t hash[ADDRESS_HASH_LEN]);
