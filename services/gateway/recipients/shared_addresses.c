// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/shared_addresses.h"

#include <stdio.h>

#include "common/base/map.h"
#include "common/codec/hash.h"

// clang-format off
// A look-up by key for each: no plan joins whole tables.
static const DbStatement SHARED = {"people_shared_addresses",
    "SELECT w.n, w.at, a.recipient_id FROM unnest($2::int4[], $3::int4[], $4::bytea[], $5::text[]) AS w (n, at, hash, own)"
    " CROSS JOIN LATERAL (SELECT q.recipient_id FROM people.addresses q WHERE q.tenant_id = $1::text AND q.address_hash = w.hash"
    "  AND q.recipient_id <> w.own AND q.status <> 'revoked' ORDER BY q.recipient_id LIMIT 1) a ORDER BY 1, 2, 3"};
// clang-format on

static bool counts(const SharedOwner *owner, size_t at)
{
    return owner->record->addresses[at].status != ADDRESS_REVOKED;
}

static size_t count_of(const SharedOwner *owner)
{
    return owner->record == NULL ? 0 : owner->record->address_count;
}

bool shared_addresses_ask(
    const RecipientsApi *api, Str tenant, const SharedOwner *owners, size_t count, DbTxn *txn)
{
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < count_of(&owners[i]); at++) {
            asked += counts(&owners[i], at);
        }
    }
    if (asked == 0) {
        return false;
    }
    HashKeys keys = master_hash_keys(keyring_master(api->keyring));
    DbParams *p = db_txn_add(txn, &SHARED, NULL);
    db_text(p, tenant);
    DbArray *n = db_array(p, DB_I32);
    DbArray *place = db_array(p, DB_I32);
    DbArray *hashes = db_array(p, DB_BYTES);
    DbArray *own = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < count_of(&owners[i]); at++) {
            const PersonAddress *address = &owners[i].record->addresses[at];
            for (size_t k = 0; counts(&owners[i], at) && k < keys.count; k++) {
                uint8_t hash[ADDRESS_HASH_LEN];
                address_hash(keys.keys[k], tenant, address->channel, address->address, hash);
                db_push_int(n, (int64_t)i);
                db_push_int(place, (int64_t)at);
                db_push_text(hashes, str_of(hash, sizeof hash));
                db_push_text(own, owners[i].id);
            }
        }
    }
    return true;
}

void shared_addresses_read(const PGresult *rows, SharedOwner *owners, size_t count, Arena *arena)
{
    for (int row = 0; row < db_rows(rows); row++) {
        size_t i = (size_t)db_get_int(rows, row, 0);
        if (i < count && owners[i].other.len == 0) {
            owners[i].at = (size_t)db_get_int(rows, row, 1);
            owners[i].other = arena_str(arena, db_get_text(rows, row, 2));
        }
    }
}

void shared_addresses_among(const RecipientsApi *api, Str tenant, SharedOwner *owners, size_t count)
{
    Map *first = map_new(NULL);
    Str key = recipients_api_hash_key(api);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < count_of(&owners[i]); at++) {
            uint8_t hash[ADDRESS_HASH_LEN];
            const PersonAddress *address = &owners[i].record->addresses[at];
            if (!counts(&owners[i], at)) {
                continue;
            }
            address_hash(key, tenant, address->channel, address->address, hash);
            const SharedOwner *other = map_get(first, str_of(hash, sizeof hash));
            if (other == NULL) {
                map_put(first, str_of(hash, sizeof hash), &owners[i]);
            } else if (owners[i].other.len == 0 && !str_eq(other->id, owners[i].id)) {
                owners[i].at = at;
                owners[i].other = other->id;
            }
        }
    }
    map_free(first);
}

void shared_addresses_field(const SharedOwner *owner, char out[SHARED_FIELD_SIZE])
{
    (void)snprintf(out, SHARED_FIELD_SIZE, "addresses[%zu].address", owner->at);
}

void shared_addresses_text(const SharedOwner *owner, char out[SHARED_TEXT_SIZE])
{
    (void)snprintf(
        out, SHARED_TEXT_SIZE, "recipient '" STR_FMT "' has this address too",
        STR_ARG(str_slice(owner->other, 0, 64)));
}
