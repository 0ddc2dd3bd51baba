// SPDX-License-Identifier: Apache-2.0
// What a reply says and who wrote it: opened under the tenant's key, as any master key of the file
// derives it. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "stentor/v1/reply.pb-c.h"

// In `arena`; NULL: it cannot be opened any more.
const Stentor__V1__ReplyContent *reply_content_open(
    MasterKey *master, Str tenant, const Stentor__V1__InboundReply *reply, Arena *arena);

// Under which hashes the address of who wrote may stand in CONFIG, the current hash key's first:
// what was made before a rotation of the hash key stands there under an older one.
typedef struct ReplyHashes {
    uint8_t hashes[MASTER_KEYS_MAX][ADDRESS_HASH_LEN];
    size_t count;
} ReplyHashes;
void reply_hashes(
    MasterKey *master, const Stentor__V1__InboundReply *reply, Arena *arena, ReplyHashes *ret);
