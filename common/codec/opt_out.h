// SPDX-License-Identifier: Apache-2.0
// Opt-out tokens: "oot_" and base64url, what an unsubscribe link carries. Stateless: the token
// holds who, what and when, and an HMAC-SHA256 under a key derived from the master key, so a link
// can be honoured without a look-up anywhere, also while Postgres is away. It holds no address,
// only its keyed hash. Pure; time is an argument.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"

enum { OPT_OUT_TOKEN_SIZE = 240, OPT_OUT_DAYS = 400 };

// One for each master key of the file: the current one signs, each verifies.
typedef struct OptOutKey {
    uint8_t bytes[MASTER_KEYS_MAX][SHA256_LEN];
    size_t count;
} OptOutKey;

typedef struct OptOut {
    Str tenant;
    Str notification_id;
    Str recipient_id; // empty: an inline address
    uint8_t address_hash[ADDRESS_HASH_LEN];
    Channel channel;
    Category category;
    int64_t issued_at_us; // kept in whole seconds
} OptOut;

void opt_out_key(const MasterKey *master, OptOutKey *ret);

// ERROR_PERMANENT names the field that does not fit. The same OptOut gives the same token.
bool opt_out_sign(
    const OptOutKey *key, const OptOut *what, char out[OPT_OUT_TOKEN_SIZE], Error *err);

// Strings of *ret live in `arena`. ERROR_PERMANENT: it is not one of ours, was altered, or is older
// than OPT_OUT_DAYS. Every altered token fails after the same time, whatever was altered.
bool opt_out_verify(
    const OptOutKey *key, Str token, int64_t now_us, Arena *arena, OptOut *ret, Error *err);
