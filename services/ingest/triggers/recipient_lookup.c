// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/triggers/recipient_lookup.h"

// Two look-ups by index for each row; the one that does not apply has a null and finds nothing.
// LATERAL with a LIMIT keeps them that: a join may become a scan of all recipients.
// Ids are ULIDs, so the least is the oldest.
static const DbStatement LOOKUP = {
    .name = "ingest_recipient_lookup",
    .sql = "SELECT i.n, coalesce(p.recipient_id, q.recipient_id) "
           "FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[]) "
           "AS i (n, tenant_id, recipient_id, identity_type, identity_id) "
           "LEFT JOIN LATERAL (SELECT r.recipient_id FROM people.recipients r "
           "WHERE r.tenant_id = i.tenant_id AND r.recipient_id = i.recipient_id LIMIT 1) p ON true "
           "LEFT JOIN LATERAL (SELECT r.recipient_id FROM people.recipients r "
           "WHERE r.tenant_id = i.tenant_id AND r.identity_type = i.identity_type "
           "AND r.identity_id = i.identity_id ORDER BY r.recipient_id LIMIT 1) q ON true "
           "WHERE coalesce(p.recipient_id, q.recipient_id) IS NOT NULL",
};

// In the order of the primary key; one more than may be, so that too many are noticed.
static const DbStatement LABELS = {
    .name = "ingest_label_lookup",
    .sql = "SELECT i.n, l.recipient_id FROM unnest($1::int4[], $2::text[], $3::text[]) "
           "AS i (n, tenant_id, label) CROSS JOIN LATERAL (SELECT q.recipient_id "
           "FROM people.labels q WHERE q.label = i.label AND q.tenant_id = i.tenant_id "
           "ORDER BY q.recipient_id LIMIT $4::int4) l ORDER BY i.n, l.recipient_id",
};

static void push_one_or_other(DbArray *array, bool this_one, Str value)
{
    if (this_one) {
        db_push_text(array, value);
    } else {
        db_push_null(array);
    }
}

static void add_ids(DbTxn *txn, const TriggerWant *wants, size_t count)
{
    DbParams *p = db_txn_add(txn, &LOOKUP, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *recipients = db_array(p, DB_TEXT);
    DbArray *types = db_array(p, DB_TEXT);
    DbArray *identities = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const Target *target = wants[i].target;
        bool by_id = target->kind == TARGET_RECIPIENT;
        if (target->kind == TARGET_LABEL) {
            continue;
        }
        db_push_int(numbers, (int64_t)i);
        db_push_text(tenants, wants[i].tenant);
        push_one_or_other(recipients, by_id, target->value);
        push_one_or_other(types, !by_id, str_from(identity_name(target->identity)));
        push_one_or_other(identities, !by_id, target->value);
    }
}

static void add_labels(DbTxn *txn, const TriggerWant *wants, size_t count)
{
    DbParams *p = db_txn_add(txn, &LABELS, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *labels = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        if (wants[i].target->kind == TARGET_LABEL) {
            db_push_int(numbers, (int64_t)i);
            db_push_text(tenants, wants[i].tenant);
            db_push_text(labels, wants[i].target->value);
        }
    }
    db_i32(p, RESOLVER_LABEL_MAX + 1);
}

static bool has_labels(const TriggerWant *wants, size_t count)
{
    bool found = false;
    for (size_t i = 0; !found && i < count; i++) {
        found = wants[i].target->kind == TARGET_LABEL;
    }
    return found;
}

void recipient_lookup_add(DbTxn *txn, const TriggerWant *wants, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(wants[i].tenant, wants[i - 1].tenant)) {
            db_txn_tenant(txn, wants[i].tenant);
        }
    }
    add_ids(txn, wants, count);
    if (has_labels(wants, count)) {
        add_labels(txn, wants, count);
    }
}

// The rows of one label stand behind each other.
static void read_labels(const PGresult *res, const TriggerWant *wants, size_t count, Arena *arena)
{
    int rows = db_rows(res);
    for (int row = 0, end = 0; row < rows; row = end) {
        int64_t n = db_get_int(res, row, 0);
        for (end = row + 1; end < rows && db_get_int(res, end, 0) == n;) {
            end++;
        }
        if (n < 0 || (size_t)n >= count) {
            continue;
        }
        Target *target = wants[n].target;
        target->members = arena_array(arena, (size_t)(end - row), sizeof *target->members);
        for (int i = row; i < end; i++) {
            target->members[target->member_count++] = arena_str(arena, db_get_text(res, i, 1));
        }
    }
}

void recipient_lookup_read(const DbTxn *txn, const TriggerWant *wants, size_t count, Arena *arena)
{
    const PGresult *res = db_txn_result(txn, 0);
    for (int row = 0; row < db_rows(res); row++) {
        int64_t n = db_get_int(res, row, 0);
        if (n >= 0 && (size_t)n < count) {
            wants[n].target->recipient_id = arena_str(arena, db_get_text(res, row, 1));
        }
    }
    if (has_labels(wants, count)) {
        read_labels(db_txn_result(txn, 1), wants, count, arena);
    }
}
