// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_sql.h"

#include "common/codec/event.h"
#include "common/model/enums.h"

// clang-format off
static const DbStatement PLAN_ANEW = {"people_plan_anew",
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)"};

static const DbStatement LOST_TAIL = {"people_lost_tail", "SELECT people.forget_lost_tail($1::int8)"};

// Rows are found by key, one look-up for each: LATERAL with OFFSET 0, and ctid in the deletes, leave no other join.
#define FOUND(table, more) \
    "(SELECT q.ctid AS row FROM people." table " q WHERE q.tenant_id = u.tenant_id AND q.recipient_id = u.recipient_id" more " OFFSET 0) AS f"

// Addresses and labels belong to the record and go with it; labels also where an erasure has deleted the record already.
static const DbStatement REMOVE = {"people_remove",
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::int8[]) AS u (tenant_id, recipient_id, sequence)),"
    " gone AS (DELETE FROM people.recipients WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("recipients", " AND q.sequence < u.sequence AND q.unsubscribed_sequence < u.sequence") "))"
    "  RETURNING tenant_id, recipient_id),"
    " addresses AS (DELETE FROM people.addresses WHERE ctid = ANY (ARRAY(SELECT f.row FROM gone u CROSS JOIN LATERAL "
    FOUND("addresses", "") "))),"
    " labels AS (DELETE FROM people.labels WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("labels", " AND NOT EXISTS (SELECT FROM people.recipients r WHERE r.tenant_id = u.tenant_id"
                    " AND r.recipient_id = u.recipient_id AND r.sequence >= u.sequence)") "))),"
    " preferences AS (DELETE FROM people.preferences WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("preferences", " AND q.sequence < u.sequence") ")))"
    " DELETE FROM people.consents WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("consents", " AND q.sequence < u.sequence") "))"};

static const DbStatement RECORDS = {"people_records",
    "INSERT INTO people.recipients AS r (tenant_id, recipient_id, identity_type, identity_id, name, locale, time_zone,"
    " quiet_start, quiet_end, minor, guardian_id, guardian_routing, updated_at, sequence)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[],"
    " $8::int2[], $9::int2[], $10::bool[], $11::text[], $12::text[], $13::timestamptz[], $14::int8[])"
    " ON CONFLICT (tenant_id, recipient_id) DO UPDATE SET identity_type = excluded.identity_type,"
    " identity_id = excluded.identity_id, name = excluded.name, locale = excluded.locale, time_zone = excluded.time_zone,"
    " quiet_start = excluded.quiet_start, quiet_end = excluded.quiet_end, minor = excluded.minor,"
    " guardian_id = excluded.guardian_id, guardian_routing = excluded.guardian_routing,"
    " updated_at = excluded.updated_at, sequence = excluded.sequence"
    " WHERE r.sequence <= excluded.sequence"};

// The whole set is written again, but only for the records that have just won.
static const DbStatement FORGET_PARTS = {"people_forget_parts",
    "WITH u AS MATERIALIZED (SELECT u.tenant_id, u.recipient_id"
    "  FROM unnest($1::text[], $2::text[], $3::int8[]) AS u (tenant_id, recipient_id, sequence)"
    "  CROSS JOIN LATERAL " FOUND("recipients", " AND q.sequence = u.sequence") "),"
    " labels AS (DELETE FROM people.labels WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("labels", "") ")))"
    " DELETE FROM people.addresses WHERE ctid = ANY (ARRAY(SELECT f.row FROM u CROSS JOIN LATERAL "
    FOUND("addresses", "") "))"};

static const DbStatement ADDRESSES = {"people_addresses",
    "INSERT INTO people.addresses (tenant_id, recipient_id, channel, address_hash, address, status, verified, is_primary,"
    " label, position)"
    " SELECT u.tenant_id, u.recipient_id, u.channel, u.hash, u.address, u.status, u.verified, u.is_primary, u.label, u.position"
    " FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::bytea[], $6::bytea[], $7::text[], $8::bool[], $9::bool[],"
    " $10::text[], $11::int2[]) AS u (tenant_id, recipient_id, sequence, channel, hash, address, status, verified, is_primary,"
    " label, position) CROSS JOIN LATERAL " FOUND("recipients", " AND q.sequence = u.sequence")
    " ON CONFLICT DO NOTHING"};

static const DbStatement LABELS = {"people_labels",
    "INSERT INTO people.labels (tenant_id, recipient_id, label) SELECT u.tenant_id, u.recipient_id, u.label"
    " FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[]) AS u (tenant_id, recipient_id, sequence, label)"
    " CROSS JOIN LATERAL " FOUND("recipients", " AND q.sequence = u.sequence")
    " ON CONFLICT DO NOTHING"};

// Without a record it is a row with sequence 0: the choice holds whatever comes first.
static const DbStatement UNSUBSCRIPTIONS = {"people_unsubscriptions",
    "INSERT INTO people.recipients AS r (tenant_id, recipient_id, unsubscribed_at, updated_at, sequence, unsubscribed_sequence)"
    " SELECT u.tenant_id, u.recipient_id, u.at, now(), 0, u.sequence"
    " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::int8[]) AS u (tenant_id, recipient_id, at, sequence)"
    " ON CONFLICT (tenant_id, recipient_id) DO UPDATE SET unsubscribed_at = excluded.unsubscribed_at,"
    " unsubscribed_sequence = excluded.unsubscribed_sequence"
    " WHERE r.unsubscribed_sequence <= excluded.unsubscribed_sequence"};

static const DbStatement PREFERENCES = {"people_preferences",
    "INSERT INTO people.preferences AS p (tenant_id, recipient_id, category, channel, is_off, frequency, at_minute, on_weekday,"
    " is_cleared, updated_at, sequence)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[], $6::text[], $7::int2[], $8::int2[],"
    " $9::bool[], $10::timestamptz[], $11::int8[])"
    " ON CONFLICT (tenant_id, recipient_id, category, channel) DO UPDATE SET is_off = excluded.is_off,"
    " frequency = excluded.frequency, at_minute = excluded.at_minute, on_weekday = excluded.on_weekday,"
    " is_cleared = excluded.is_cleared, updated_at = excluded.updated_at, sequence = excluded.sequence"
    " WHERE p.sequence <= excluded.sequence"};

static const DbStatement CONSENTS = {"people_consents",
    "INSERT INTO people.consents AS c (tenant_id, recipient_id, category, channel, is_granted, source, given_at, sequence)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[], $6::text[], $7::timestamptz[], $8::int8[])"
    " ON CONFLICT (tenant_id, recipient_id, category, channel) DO UPDATE SET is_granted = excluded.is_granted,"
    " source = excluded.source, given_at = excluded.given_at, sequence = excluded.sequence"
    " WHERE c.sequence <= excluded.sequence"};
// clang-format on

static Str category_or_any(int category)
{
    return category == CATEGORY_NONE ? STR("any") : str_from(category_name((Category)category));
}

static Str channel_or_any(int channel)
{
    return channel == CHANNEL_NONE ? STR("any") : str_from(channel_name((Channel)channel));
}

static Str pack_sealed(const Stentor__V1__Sealed *sealed, Arena *arena)
{
    Str bytes = STR_EMPTY;
    if (sealed != NULL) {
        (void)event_pack(&sealed->base, arena, &bytes, NULL); // part of an event that fitted
    }
    return bytes;
}

typedef struct Rows {
    PersonFold *const *at;
    size_t count;
    DbTxn *txn;
} Rows;

typedef uint64_t (*SequenceOf)(const PersonFold *person); // 0: the statement is not about it

static uint64_t removal_of(const PersonFold *person)
{
    return person->removed_sequence;
}

static uint64_t record_of(const PersonFold *person)
{
    return person->record != NULL ? person->record_sequence : 0;
}

// $1 tenant, $2 recipient, $3 sequence.
static void write_keys(const Rows *rows, const DbStatement *statement, SequenceOf sequence_of)
{
    DbParams *p = db_txn_add(rows->txn, statement, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *sequence = db_array(p, DB_I64);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        if (sequence_of(person) > 0) {
            db_push_text(tenant, person->tenant);
            db_push_text(id, person->id);
            db_push_int(sequence, (int64_t)sequence_of(person));
        }
    }
}

static void push_quiet(DbArray *start, DbArray *end, const Stentor__V1__QuietHours *quiet)
{
    if (quiet == NULL) {
        db_push_null(start);
        db_push_null(end);
    } else {
        db_push_int(start, quiet->start_minute);
        db_push_int(end, quiet->end_minute);
    }
}

static void write_records(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &RECORDS, NULL);
    DbArray *text[7]; // tenant, id, identity type and id, name, locale, zone
    for (int i = 0; i < 7; i++) {
        text[i] = db_array(p, i == 4 ? DB_BYTES : DB_TEXT);
    }
    DbArray *quiet_start = db_array(p, DB_I16);
    DbArray *quiet_end = db_array(p, DB_I16);
    DbArray *minor = db_array(p, DB_BOOL);
    DbArray *guardian = db_array(p, DB_TEXT);
    DbArray *routing = db_array(p, DB_TEXT);
    DbArray *updated_at = db_array(p, DB_TIME);
    DbArray *sequence = db_array(p, DB_I64);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        const Stentor__V1__Recipient *record = person->record;
        if (record == NULL) {
            continue;
        }
        db_push_text(text[0], person->tenant);
        db_push_text(text[1], person->id);
        db_push_optional(text[2], str_from(identity_name((Identity)record->identity)));
        db_push_optional(text[3], str_from(record->identity_id));
        db_push_optional(text[4], pack_sealed(record->name, db_txn_arena(rows->txn)));
        db_push_optional(text[5], str_from(record->locale));
        db_push_optional(text[6], str_from(record->time_zone));
        push_quiet(quiet_start, quiet_end, record->quiet_hours);
        db_push_int(minor, record->minor);
        db_push_optional(guardian, str_from(record->guardian_id));
        db_push_optional(
            routing, str_from(guardian_routing_name((GuardianRouting)record->guardian_routing)));
        db_push_time(updated_at, person->record_at_us);
        db_push_int(sequence, (int64_t)person->record_sequence);
    }
}

static void write_addresses(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &ADDRESSES, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *sequence = db_array(p, DB_I64);
    DbArray *channel = db_array(p, DB_TEXT);
    DbArray *hash = db_array(p, DB_BYTES);
    DbArray *sealed = db_array(p, DB_BYTES);
    DbArray *status = db_array(p, DB_TEXT);
    DbArray *verified = db_array(p, DB_BOOL);
    DbArray *is_primary = db_array(p, DB_BOOL);
    DbArray *label = db_array(p, DB_TEXT);
    DbArray *position = db_array(p, DB_I16);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        size_t count = person->record == NULL ? 0 : person->record->n_addresses;
        for (size_t n = 0; n < count; n++) {
            const Stentor__V1__RecipientAddress *a = person->record->addresses[n];
            AddressStatus said = a->status == 0 ? ADDRESS_ACTIVE : (AddressStatus)a->status;
            db_push_text(tenant, person->tenant);
            db_push_text(id, person->id);
            db_push_int(sequence, (int64_t)person->record_sequence);
            db_push_text(channel, str_from(channel_name((Channel)a->channel)));
            db_push_text(hash, pb_bytes(a->address_hash));
            db_push_text(sealed, pack_sealed(a->address, db_txn_arena(rows->txn)));
            db_push_text(status, str_from(address_status_name(said)));
            db_push_int(verified, a->verified);
            db_push_int(is_primary, a->primary);
            db_push_optional(label, str_from(a->label));
            db_push_int(position, (int64_t)n);
        }
    }
}

static void write_labels(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &LABELS, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *sequence = db_array(p, DB_I64);
    DbArray *label = db_array(p, DB_TEXT);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        size_t count = person->record == NULL ? 0 : person->record->n_labels;
        for (size_t n = 0; n < count; n++) {
            db_push_text(tenant, person->tenant);
            db_push_text(id, person->id);
            db_push_int(sequence, (int64_t)person->record_sequence);
            db_push_text(label, str_from(person->record->labels[n]));
        }
    }
}

static void write_unsubscriptions(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &UNSUBSCRIPTIONS, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *at = db_array(p, DB_TIME);
    DbArray *sequence = db_array(p, DB_I64);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        if (person->unsubscribed_sequence > 0) {
            db_push_text(tenant, person->tenant);
            db_push_text(id, person->id);
            db_push_time(at, person->unsubscribed_at_us);
            db_push_int(sequence, (int64_t)person->unsubscribed_sequence);
        }
    }
}

static void write_preferences(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &PREFERENCES, NULL);
    DbArray *text[4]; // tenant, id, category, channel
    for (int i = 0; i < 4; i++) {
        text[i] = db_array(p, DB_TEXT);
    }
    DbArray *off = db_array(p, DB_BOOL);
    DbArray *frequency = db_array(p, DB_TEXT);
    DbArray *minute = db_array(p, DB_I16);
    DbArray *weekday = db_array(p, DB_I16);
    DbArray *cleared = db_array(p, DB_BOOL);
    DbArray *updated_at = db_array(p, DB_TIME);
    DbArray *sequence = db_array(p, DB_I64);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        for (const PreferenceFold *e = person->preferences; e != NULL; e = e->next) {
            Frequency said =
                e->said->frequency == 0 ? FREQUENCY_IMMEDIATE : (Frequency)e->said->frequency;
            db_push_text(text[0], person->tenant);
            db_push_text(text[1], person->id);
            db_push_text(text[2], category_or_any((int)e->said->category));
            db_push_text(text[3], channel_or_any((int)e->said->channel));
            db_push_int(off, e->said->off);
            db_push_text(frequency, str_from(frequency_name(said)));
            db_push_int(minute, e->said->at_minute);
            db_push_int(weekday, e->said->on_weekday);
            db_push_int(cleared, e->said->cleared);
            db_push_time(updated_at, e->stored_at_us);
            db_push_int(sequence, (int64_t)e->sequence);
        }
    }
}

static void write_consents(const Rows *rows)
{
    DbParams *p = db_txn_add(rows->txn, &CONSENTS, NULL);
    DbArray *text[4]; // tenant, id, category, channel
    for (int i = 0; i < 4; i++) {
        text[i] = db_array(p, DB_TEXT);
    }
    DbArray *granted = db_array(p, DB_BOOL);
    DbArray *source = db_array(p, DB_TEXT);
    DbArray *given_at = db_array(p, DB_TIME);
    DbArray *sequence = db_array(p, DB_I64);
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        for (const ConsentFold *e = person->consents; e != NULL; e = e->next) {
            db_push_text(text[0], person->tenant);
            db_push_text(text[1], person->id);
            db_push_text(text[2], category_or_any((int)e->said->category));
            db_push_text(text[3], channel_or_any((int)e->said->channel));
            db_push_int(granted, e->said->granted);
            db_push_optional(source, str_from(e->said->source));
            db_push_time(given_at, e->given_at_us);
            db_push_int(sequence, (int64_t)e->sequence);
        }
    }
}

typedef struct Kinds {
    bool removals;
    bool records;
    bool addresses;
    bool labels;
    bool unsubscriptions;
    bool preferences;
    bool consents;
} Kinds;

static Kinds look_over(const Rows *rows)
{
    Kinds kinds = {0};
    for (size_t i = 0; i < rows->count; i++) {
        const PersonFold *person = rows->at[i];
        if (i == 0 || !str_eq(person->tenant, rows->at[i - 1]->tenant)) {
            db_txn_tenant(rows->txn, person->tenant);
        }
        kinds.removals = kinds.removals || person->removed_sequence > 0;
        kinds.records = kinds.records || person->record != NULL;
        kinds.addresses =
            kinds.addresses || (person->record != NULL && person->record->n_addresses > 0);
        kinds.labels = kinds.labels || (person->record != NULL && person->record->n_labels > 0);
        kinds.unsubscriptions = kinds.unsubscriptions || person->unsubscribed_sequence > 0;
        kinds.preferences = kinds.preferences || person->preferences != NULL;
        kinds.consents = kinds.consents || person->consents != NULL;
    }
    return kinds;
}

void people_sql_replan(DbTxn *txn)
{
    (void)db_txn_add(txn, &PLAN_ANEW, NULL);
}

_Static_assert(
    2 * PEOPLE_FLUSH_BYTES + PEOPLE_EVENT_MAX <= DB_VALUES_MAX_BYTES,
    "the largest records of a flush fit");

void people_sql_write(const PeopleFold *fold, bool lost_tail, DbTxn *txn)
{
    Rows rows = {.txn = txn};
    rows.at = people_fold_rows(fold, &rows.count);
    Kinds kinds = look_over(&rows);
    people_sql_replan(txn);
    if (lost_tail) {
        db_i64(db_txn_add(txn, &LOST_TAIL, NULL), (int64_t)people_fold_first(fold));
    }
    if (kinds.removals) { // first: what came after it in the same flush is written below
        write_keys(&rows, &REMOVE, removal_of);
    }
    if (kinds.records) {
        write_records(&rows);
        write_keys(&rows, &FORGET_PARTS, record_of);
    }
    if (kinds.addresses) {
        write_addresses(&rows);
    }
    if (kinds.labels) {
        write_labels(&rows);
    }
    if (kinds.unsubscriptions) {
        write_unsubscriptions(&rows);
    }
    if (kinds.preferences) {
        write_preferences(&rows);
    }
    if (kinds.consents) {
        write_consents(&rows);
    }
}
