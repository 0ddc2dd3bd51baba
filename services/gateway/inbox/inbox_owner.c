// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_owner.h"

#include "common/codec/hash.h"

// Under each hash key, as the gate looks for owners: a rotation hashes no row again.
static const DbStatement OWNER = {
    "inbox_owner", "SELECT DISTINCT a.recipient_id FROM people.addresses a"
                   " WHERE a.tenant_id = $1::text AND a.address_hash = ANY($2::bytea[])"
                   " AND a.channel = 'inapp' AND a.status = 'active' LIMIT 2"};

static void on_read(void *ctx, DbTxn *txn, const Error *err)
{
    InboxOwner *owner = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (err == NULL && db_rows(rows) == 1) {
        owner->id = arena_str(owner->http->arena, db_get_text(rows, 0, 0));
    } else if (err == NULL && db_rows(rows) == 0 && id_parse(owner->address, "rcp_", NULL)) {
        owner->id = owner->address;
    }
    owner->done(owner, err);
}

void inbox_owner_find(InboxOwner *owner)
{
    DbTxn *txn = db_txn_new(owner->pool);
    db_txn_tenant(txn, owner->tenant);
    DbParams *p = db_txn_add(txn, &OWNER, NULL);
    db_text(p, owner->tenant);
    DbArray *hashes = db_array(p, DB_BYTES);
    HashKeys keys = master_hash_keys(owner->master);
    for (size_t i = 0; i < keys.count; i++) {
        uint8_t hash[ADDRESS_HASH_LEN];
        address_hash(keys.keys[i], owner->tenant, CHANNEL_INAPP, owner->address, hash);
        db_push_text(hashes, str_of(hash, sizeof hash));
    }
    owner->id = STR_EMPTY;
    db_txn_submit(txn, on_read, owner);
}
