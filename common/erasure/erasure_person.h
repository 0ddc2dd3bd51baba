// SPDX-License-Identifier: Apache-2.0
// Whose data is meant: a person by recipient id, identity or address, and all names under which
// keys and rows of theirs are found. It holds hashes, and no address.
#pragma once

#include "common/codec/hash.h"
#include "common/codec/master_key.h"
#include "common/erasure/erasure_pg.h"

// One of recipient_id, identity_id and address; the others are empty.
typedef struct ErasureSearch {
    const char *tenant;
    Str recipient_id;
    Str identity_type;
    Str identity_id;
    Channel channel; // of the address
    Str address;     // normalised
    bool to_read;    // also former addresses whose key goes with another's erasure
} ErasureSearch;

typedef struct ErasurePerson {
    const char *tenant;
    const char *recipient_id; // "": an address that belongs to no recipient
    const Str *subjects;      // of data keys: the recipient's, and those of each address
    size_t subject_count;
    size_t record_count; // of these, at the end: keys of what the law may oblige to keep
                         // (DATA_KEY_RECORD)
    const Str *hashes;   // of addresses, former ones too (erasure.hashes_of)
    size_t hash_count;
} ErasurePerson;

// Ids of all recipients with this identity, in their order: one, as a rule.
bool erasure_find_identity(
    PGconn *pg, const ErasureSearch *search, Arena *arena, const Str **ret, size_t *ret_count,
    Error *err);

// Reads people.*; everything in `arena`. *ret_found false: no record has this identity. An id
// without a record and an address that is in no record are found: they may have keys. ERROR_USAGE:
// an address that several recipients have, with their ids.
bool erasure_find(
    PGconn *pg, const HashKeys *keys, const ErasureSearch *search, Arena *arena, ErasurePerson *ret,
    bool *ret_found, Error *err);
