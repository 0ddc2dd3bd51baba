// SPDX-License-Identifier: Apache-2.0
// A chunk of a batch's members as one blob: their fields one after the other, a zstd frame of that
// (common/codec/body.h), sealed under the tenant's key and bound to the batch and its place in it.
// Pure but for the seal's nonce.
#pragma once

#include "common/campaign/batch_member.h"
#include "common/codec/seal.h"

enum {
    CHUNK_MEMBERS_MAX = 1000,
    CHUNK_BYTES_MAX = 500 * 1024, // plain; less than a body frame takes
};

// Which chunk it is: a blob cannot stand in for another.
typedef struct ChunkPlace {
    Str tenant;
    Str batch_id;
    int64_t part;
    int64_t ordinal; // within the part
} ChunkPlace;

// How much of CHUNK_BYTES_MAX a member takes.
size_t chunk_member_bytes(const Member *member);
// 1..CHUNK_MEMBERS_MAX members within CHUNK_BYTES_MAX. The blob lives in `arena`.
bool chunk_pack(
    DataKey *key, const ChunkPlace *place, const Member *members, size_t count, Arena *arena,
    Str *ret_blob, Error *err);
// ERROR_PERMANENT when it was altered, moved, or is no such blob. All in `arena`.
bool chunk_unpack(
    DataKey *key, const ChunkPlace *place, Str blob, Arena *arena, Member **ret_members,
    size_t *ret_count, Error *err);

// Any other text of a batch (its variables), sealed the same way.
bool chunk_seal_text(
    DataKey *key, Str tenant, Str batch_id, const char *field, Str plain, Arena *arena,
    Str *ret_blob, Error *err);
bool chunk_unseal_text(
    DataKey *key, Str tenant, Str batch_id, const char *field, Str blob, Arena *arena,
    Str *ret_plain, Error *err);

// The plain form alone: what the frame holds.
Str chunk_encode(const Member *members, size_t count, Arena *arena);
bool chunk_decode(Str plain, Arena *arena, Member **ret_members, size_t *ret_count, Error *err);
