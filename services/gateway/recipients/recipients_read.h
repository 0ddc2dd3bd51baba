// SPDX-License-Identifier: Apache-2.0
// Recipients out of the tables, as JSON: by id, by the tenant's own identity, by address.
#pragma once

#include "common/base/buf.h"
#include "common/codec/hash.h"
#include "common/db/keyring.h"

enum { PEOPLE_HASHES_MAX = 8, RECIPIENTS_JSON_MAX = 8 * 1024 * 1024 };

typedef struct RecipientsRead {
    DbPool *pool;
    Keyring *keyring;
    Arena *arena; // must live until done
    Str tenant;
    bool reveal; // names and addresses whole, not masked
    // One of the three:
    Str id;
    Identity identity; // with identity_id
    Str identity_id;
    const uint8_t (*hashes)[ADDRESS_HASH_LEN]; // of the address, one for each channel that it fits
    size_t hash_count;
    Str after;    // ids behind this one; empty: from the first
    size_t limit; // 0: 1
    // What was found:
    bool more;        // than the limit; `last` is the last id shown
    Str last;         // empty: none
    uint64_t version; // of PEOPLE: the last event about the last one
    // From the loop, once. people: so many objects, separated by commas.
    void (*done)(void *ctx, size_t count, Str people, const Error *err);
    void *ctx;
} RecipientsRead;

void recipients_read(RecipientsRead *read);

// ---- statements that others use too ----

// $1 tenant, $2 id: the id if it has a record, and the sequence of the last event about it.
extern const DbStatement people_known_sql;
// $1 tenant, $2 id: category, channel, is_off, frequency, at_minute, on_weekday, updated_at.
extern const DbStatement people_preferences_sql;
// $1 tenant, $2 id: category, channel, is_granted, source, given_at.
extern const DbStatement people_consents_sql;
// $1 tenant, $2 types, $3 ids: type, id, recipient_id (the first of several).
extern const DbStatement people_identities_sql;
