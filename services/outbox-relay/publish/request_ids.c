// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/request_ids.h"

bool request_ids_note(const RequestIds *requests, const RelaySql *sql, Str claim_id, DbTxn *txn)
{
    size_t waiting = 0;
    for (size_t i = 0; i < requests->count; i++) {
        waiting += requests->posts[i].fate == POST_WAITS ? 1 : 0;
    }
    if (waiting == 0) {
        return false;
    }
    db_txn_add(txn, &sql->plan, NULL);
    DbParams *p = db_txn_add(txn, &sql->note, NULL);
    db_text(p, claim_id);
    DbArray *keys = db_array(p, DB_TEXT);
    DbArray *attempts = db_array(p, DB_I32);
    DbArray *ids = db_array(p, DB_TEXT);
    DbArray *times = db_array(p, DB_TIME);
    for (size_t i = 0; i < requests->count; i++) {
        if (requests->posts[i].fate != POST_WAITS) {
            continue;
        }
        db_push_text(keys, requests->rows[i].key);
        db_push_int(attempts, requests->rows[i].attempt);
        db_push_text(ids, str_from(requests->messages[i].notification_id));
        db_push_time(times, requests->rows[i].made_at_us);
    }
    return true;
}

// The answer is in no order: rows are found by their key.
static size_t *index_rows(const RequestIds *requests, Arena *arena, size_t *ret_mask)
{
    size_t cap = 4;
    while (cap < 2 * requests->count) {
        cap *= 2;
    }
    *ret_mask = cap - 1;
    size_t *slots = arena_array(arena, cap, sizeof(*slots));
    for (size_t i = 0; i < requests->count; i++) {
        size_t at = (size_t)str_hash(requests->rows[i].key) & *ret_mask;
        while (slots[at] != 0) {
            at = (at + 1) & *ret_mask;
        }
        slots[at] = i + 1;
    }
    return slots;
}

size_t request_ids_read(
    const RequestIds *requests, const PGresult *noted, Arena *arena, size_t *ret_changed)
{
    size_t mask = 0;
    size_t changed = 0;
    const size_t *slots = index_rows(requests, arena, &mask);
    for (int n = 0; n < db_rows(noted); n++) {
        Str key = db_get_text(noted, n, 0);
        size_t at = (size_t)str_hash(key) & mask;
        while (slots[at] != 0 && !str_eq(requests->rows[slots[at] - 1].key, key)) {
            at = (at + 1) & mask;
        }
        if (slots[at] == 0) {
            continue;
        }
        Row *row = &requests->rows[slots[at] - 1];
        int64_t made_at_us = db_get_time(noted, n, 3);
        if (made_at_us != row->made_at_us) {
            row->made_at_us = made_at_us;
            ret_changed[changed++] = slots[at] - 1;
        }
    }
    return changed;
}
