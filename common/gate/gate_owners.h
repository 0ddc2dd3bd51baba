// SPDX-License-Identifier: Apache-2.0
// Whose the addresses of a group are: the recipients that have an address, found by its keyed hash.
// One statement for the whole group. Only what a recipient may refuse is asked about: of a
// transactional or security mail nothing is.
#pragma once

#include "common/codec/master_key.h"
#include "common/db/db.h"
#include "common/gate/notice.h"

enum { OWNERS_MAX = 100 }; // of one address; beyond it the ones with the oldest ids

typedef struct OwnersAsk {
    const HashKeys *keys; // an address may have been hashed under an older one
    Str hash_key;         // where there are no others
    Notice *notices;
    size_t count;
    Arena *arena;
} OwnersAsk;

// Does the statement have anything to ask of them?
bool owners_wanted(const Notice *notices, size_t count);
void owners_ask(const OwnersAsk *ask, DbTxn *txn);
// Fills owner_ids and owner_count of each notice, in the order of the ids.
void owners_read(const OwnersAsk *ask, const PGresult *res);
