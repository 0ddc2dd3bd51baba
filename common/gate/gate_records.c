// SPDX-License-Identifier: Apache-2.0
#include "common/gate/gate_records.h"

#include <string.h>

enum { WORDS_MAX = 88 }; // (10 categories and any) x (7 channels and any)

// LATERAL with a LIMIT stays a look-up by key for each recipient, whatever the planner believes
// about the size of the arrays.
#define WANTED "FROM unnest($1::int4[], $2::text[], $3::text[]) AS i (n, tenant_id, recipient_id) "
#define HIS "WHERE s.tenant_id = i.tenant_id AND s.recipient_id = i.recipient_id "

static const DbStatement RECIPIENTS = {
    .name = "gate_recipients",
    .sql = "SELECT i.n, r.locale, r.time_zone, r.quiet_start, r.quiet_end, r.minor, r.guardian_id, "
           "r.guardian_routing, r.unsubscribed_at IS NOT NULL " WANTED
           "CROSS JOIN LATERAL (SELECT * FROM people.recipients s " HIS "LIMIT 1) r",
};

static const DbStatement ADDRESSES = {
    .name = "gate_addresses",
    .sql =
        "SELECT i.n, a.channel, a.address_hash, a.address " WANTED
        "CROSS JOIN LATERAL (SELECT DISTINCT ON (s.channel) s.channel, s.address_hash, s.address "
        "FROM people.addresses s " HIS "AND s.status = 'active' "
        "ORDER BY s.channel, s.is_primary DESC, s.position LIMIT 7) a",
};

static const DbStatement PREFERENCES = {
    .name = "gate_preferences",
    .sql = "SELECT i.n, p.category, p.channel, p.is_off, p.frequency, p.at_minute, "
           "p.on_weekday " WANTED "CROSS JOIN LATERAL (SELECT * FROM people.preferences s " HIS
           "AND NOT s.is_cleared LIMIT 88) p",
};

static const DbStatement CONSENTS = {
    .name = "gate_consents",
    .sql = "SELECT i.n, c.category, c.channel, c.is_granted " WANTED
           "CROSS JOIN LATERAL (SELECT * FROM people.consents s " HIS "LIMIT 88) c",
};

void records_init(Records *records, Arena *arena, size_t cap)
{
    *records = (Records){
        .arena = arena,
        .by_name = map_new(NULL),
        .items = arena_array(arena, cap, sizeof *records->items),
        .cap = cap,
    };
}

void records_done(Records *records)
{
    map_free(records->by_name);
    records->by_name = NULL;
}

static Str name_of(Arena *arena, Str tenant, Str id)
{
    return str_from(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(id)));
}

static void make_room(Records *records)
{
    if (records->count == records->cap) {
        size_t cap = 2 * records->cap + 1;
        Record **items = arena_array(records->arena, cap, sizeof *items);
        memcpy((void *)items, (const void *)records->items, records->count * sizeof *items);
        records->items = items;
        records->cap = cap;
    }
}

Record *records_want(Records *records, Str tenant, Str id)
{
    Str name = name_of(records->arena, tenant, id);
    Record *record = map_get(records->by_name, name);
    if (record == NULL) {
        make_room(records);
        record = arena_zalloc(records->arena, sizeof *record);
        record->tenant = tenant;
        record->id = arena_str(records->arena, id);
        records->items[records->count++] = record;
        map_put(records->by_name, name, record);
    }
    return record;
}

Record *records_find(const Records *records, Str tenant, Str id)
{
    Record *record = map_get(records->by_name, name_of(records->arena, tenant, id));
    return record != NULL && record->known ? record : NULL;
}

static void ask(const Records *records, DbTxn *txn, const DbStatement *statement)
{
    DbParams *p = db_txn_add(txn, statement, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = records->read; i < records->count; i++) {
        db_push_int(numbers, (int64_t)i);
        db_push_text(tenants, records->items[i]->tenant);
        db_push_text(ids, records->items[i]->id);
    }
}

void records_ask(const Records *records, DbTxn *txn)
{
    for (size_t i = records->read; i < records->count; i++) {
        db_txn_tenant(txn, records->items[i]->tenant);
    }
    ask(records, txn, &RECIPIENTS);
    ask(records, txn, &ADDRESSES);
    ask(records, txn, &PREFERENCES);
    ask(records, txn, &CONSENTS);
}

// ---- answers ----

static Record *record_at(const Records *records, const PGresult *res, int row)
{
    return records->items[(size_t)db_get_int(res, row, 0)];
}

static Str copy_text(Arena *arena, const PGresult *res, int row, int column)
{
    return db_is_null(res, row, column) ? STR_EMPTY
                                        : arena_str(arena, db_get_text(res, row, column));
}

static void read_recipient(Records *records, const PGresult *res, int row, Zones *zones)
{
    Record *record = record_at(records, res, row);
    GatePerson *facts = &record->facts;
    record->known = true;
    record->locale = copy_text(records->arena, res, row, 1);
    Str zone = db_is_null(res, row, 2) ? STR_EMPTY : db_get_text(res, row, 2);
    facts->zone = zone.len == 0 ? NULL : zones_get(zones, zone, NULL);
    record->time_zone = facts->zone == NULL ? STR_EMPTY : arena_str(records->arena, zone);
    facts->has_quiet_hours = !db_is_null(res, row, 3) && !db_is_null(res, row, 4);
    if (facts->has_quiet_hours) {
        facts->quiet_hours.start_minute = (int32_t)db_get_int(res, row, 3);
        facts->quiet_hours.end_minute = (int32_t)db_get_int(res, row, 4);
    }
    facts->minor = db_get_int(res, row, 5) != 0;
    record->guardian_id = copy_text(records->arena, res, row, 6);
    if (!db_is_null(res, row, 7)) {
        (void)guardian_routing_from_name(db_get_text(res, row, 7), &facts->guardian_routing);
    }
    facts->unsubscribed = db_get_int(res, row, 8) != 0;
}

static void read_address(Records *records, const PGresult *res, int row)
{
    Channel channel = CHANNEL_NONE;
    Str hash = db_get_text(res, row, 2);
    if (!channel_from_name(db_get_text(res, row, 1), &channel) || hash.len != ADDRESS_HASH_LEN) {
        return; // a channel that this version does not know
    }
    RecordAddress *address = &record_at(records, res, row)->addresses[channel];
    address->there = true;
    memcpy(address->hash, hash.ptr, ADDRESS_HASH_LEN);
    address->sealed = copy_text(records->arena, res, row, 3);
}

// "any" is no name and stays NONE.
static void read_subject(const PGresult *res, int row, Category *category, Channel *channel)
{
    (void)category_from_name(db_get_text(res, row, 1), category);
    (void)channel_from_name(db_get_text(res, row, 2), channel);
}

static void read_preference(Records *records, const PGresult *res, int row)
{
    Record *record = record_at(records, res, row);
    if (record->preferences == NULL) {
        record->preferences = arena_array(records->arena, WORDS_MAX, sizeof(GatePreference));
        record->facts.preferences = record->preferences;
    }
    GatePreference *preference = &record->preferences[record->facts.preference_count++];
    read_subject(res, row, &preference->category, &preference->channel);
    preference->off = db_get_int(res, row, 3) != 0;
    (void)frequency_from_name(db_get_text(res, row, 4), &preference->plan.frequency);
    preference->plan.at_minute = (int32_t)db_get_int(res, row, 5);
    preference->plan.on_weekday = (int32_t)db_get_int(res, row, 6);
}

static void read_consent(Records *records, const PGresult *res, int row)
{
    Record *record = record_at(records, res, row);
    if (record->consents == NULL) {
        record->consents = arena_array(records->arena, WORDS_MAX, sizeof(GateConsent));
        record->facts.consents = record->consents;
    }
    GateConsent *consent = &record->consents[record->facts.consent_count++];
    read_subject(res, row, &consent->category, &consent->channel);
    consent->granted = db_get_int(res, row, 3) != 0;
}

void records_read(Records *records, const DbTxn *txn, int at, Zones *zones)
{
    const PGresult *res = db_txn_result(txn, at);
    for (int row = 0; row < db_rows(res); row++) {
        read_recipient(records, res, row, zones);
    }
    res = db_txn_result(txn, at + 1);
    for (int row = 0; row < db_rows(res); row++) {
        read_address(records, res, row);
    }
    res = db_txn_result(txn, at + 2);
    for (int row = 0; row < db_rows(res); row++) {
        read_preference(records, res, row);
    }
    res = db_txn_result(txn, at + 3);
    for (int row = 0; row < db_rows(res); row++) {
        read_consent(records, res, row);
    }
    records->read = records->count;
}
