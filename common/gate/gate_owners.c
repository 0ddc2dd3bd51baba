// SPDX-License-Identifier: Apache-2.0
#include "common/gate/gate_owners.h"

#include "common/model/suppressions.h"

// A revoked address is no one's any more; a suppressed one still is.
static const DbStatement OWNERS = {
    .name = "gate_owners",
    .sql = "SELECT i.n, a.recipient_id FROM unnest($1::int4[], $2::text[], $3::bytea[]) "
           "AS i (n, tenant_id, address_hash) CROSS JOIN LATERAL (SELECT s.recipient_id "
           "FROM people.addresses s WHERE s.address_hash = i.address_hash "
           "AND s.tenant_id = i.tenant_id AND s.status <> 'revoked' ORDER BY s.recipient_id "
           "LIMIT $4::int4) a ORDER BY i.n, a.recipient_id",
};

static bool is_wanted(const Notice *notice)
{
    return notice->request.to.len > 0 && !category_ignores_opt_out(notice->request.category);
}

bool owners_wanted(const Notice *notices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&notices[i])) {
            return true;
        }
    }
    return false;
}

// A number is one person's, whichever way it is reached.
static bool is_phone(Channel channel)
{
    return channel == CHANNEL_SMS || channel == CHANNEL_WHATSAPP || channel == CHANNEL_VOICE;
}

typedef struct Columns {
    DbArray *numbers, *tenants, *hashes;
} Columns;

static void push(const OwnersAsk *ask, const Columns *columns, size_t n, Channel channel)
{
    const Notice *notice = &ask->notices[n];
    size_t keys = ask->keys->count == 0 ? 1 : ask->keys->count;
    for (size_t i = 0; i < keys; i++) {
        uint8_t hash[ADDRESS_HASH_LEN];
        Str key = ask->keys->count == 0 ? ask->hash_key : ask->keys->keys[i];
        address_hash(key, notice->tenant, channel, notice->request.to, hash);
        db_push_int(columns->numbers, (int64_t)n);
        db_push_text(columns->tenants, notice->tenant);
        db_push_text(columns->hashes, str_of(hash, sizeof hash));
    }
}

void owners_ask(const OwnersAsk *ask, DbTxn *txn)
{
    static const Channel phones[] = {CHANNEL_SMS, CHANNEL_WHATSAPP, CHANNEL_VOICE};
    DbParams *p = db_txn_add(txn, &OWNERS, NULL);
    Columns columns = {db_array(p, DB_I32), db_array(p, DB_TEXT), db_array(p, DB_BYTES)};
    db_i32(p, OWNERS_MAX);
    for (size_t n = 0; n < ask->count; n++) {
        Channel channel = ask->notices[n].request.channel;
        if (!is_wanted(&ask->notices[n])) {
            continue;
        }
        db_txn_tenant(txn, ask->notices[n].tenant);
        for (size_t i = 0; is_phone(channel) && i < sizeof phones / sizeof phones[0]; i++) {
            push(ask, &columns, n, phones[i]);
        }
        if (!is_phone(channel)) {
            push(ask, &columns, n, channel);
        }
    }
}

static void add_owner(Notice *notice, Str id, Arena *arena)
{
    size_t count = notice->owner_count;
    if (count > 0 && str_eq(notice->owner_ids[count - 1], id)) {
        return; // under another key, or as another channel's address
    }
    if (count == OWNERS_MAX) {
        return;
    }
    if (count == 0 || (count & (count - 1)) == 0) { // full: 0, 1, 2, 4, 8 ...
        Str *more = arena_array(arena, count == 0 ? 1 : 2 * count, sizeof *more);
        for (size_t i = 0; i < count; i++) {
            more[i] = notice->owner_ids[i];
        }
        notice->owner_ids = more;
    }
    notice->owner_ids[notice->owner_count++] = arena_str(arena, id);
}

void owners_read(const OwnersAsk *ask, const PGresult *res)
{
    for (int row = 0; row < db_rows(res); row++) {
        size_t n = (size_t)db_get_int(res, row, 0);
        if (n < ask->count) {
            add_owner(&ask->notices[n], db_get_text(res, row, 1), ask->arena);
        }
    }
}
