// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/preferences/preference_change.h"

#include "common/api/config_read.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "common/recipients/people_sql.h"
#include "services/gateway/recipients/recipients_read.h"
#include "services/gateway/suppressions/suppression_note.h"

static const DbStatement RECORD = {
    "preferences_record",
    "SELECT r.unsubscribed_at IS NOT NULL, coalesce((SELECT string_agg(DISTINCT a.channel, ' ')"
    "  FROM people.addresses a WHERE a.tenant_id = $1::text AND a.recipient_id = $2::text), ''),"
    " (SELECT a.address_hash FROM people.addresses a WHERE a.tenant_id = $1::text"
    "  AND a.recipient_id = $2::text AND a.channel = 'email' AND a.status = 'active'"
    "  ORDER BY a.is_primary DESC, a.position LIMIT 1)"
    " FROM people.recipients r WHERE r.tenant_id = $1::text AND r.recipient_id = $2::text"
    "  AND r.sequence > 0"};

// A category's opt-out that is ended; in the request's arena.
typedef struct Release {
    PreferenceCall *call;
    char *subject;
    Stentor__V1__Suppression *entry;
    uint64_t replaces;
} Release;

// ---- storing the address's opt-outs ----

static void part_stored(PreferenceCall *call, const Error *err)
{
    if (err != NULL) {
        call->failed = *err;
    }
    if (--call->waiting > 0) {
        return;
    }
    call->done(call, call->failed.kind != ERROR_NONE ? &call->failed : NULL);
}

static void on_part_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence, (void)duplicate;
    part_stored(ctx, err);
}

static void store_opt_out(PreferenceCall *call, Category category)
{
    SuppressionSpec spec = {
        .tenant = call->tenant,
        .channel = CHANNEL_EMAIL,
        .category = category,
        .hash = call->address_hash,
        .reason = SUPPRESSION_OPT_OUT,
        .at_us = call->http->received_at_us,
        .by = str_from(call->said_by),
        .notification_id = call->notification_id,
    };
    Arena *arena = call->http->arena;
    call->waiting++;
    suppression_store(
        call->parts->bus, call->parts->known, suppression_make(&spec, arena), STR_EMPTY, arena,
        on_part_stored, call);
}

static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE; // another changed it at this moment: its word stands
}

static void store_release(Release *release)
{
    PreferenceCall *call = release->call;
    Arena *arena = call->http->arena;
    Error err = {0};
    ConfigStore store = {
        .replaces = release->replaces,
        .decide = leave,
        .done = on_part_stored,
        .ctx = call,
    };
    if (suppression_event(release->entry, arena, &store.out, &err)) {
        config_store(call->parts->bus, &store, arena);
    } else {
        part_stored(call, &err);
    }
}

static void on_release_noted(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    Release *release = ctx;
    if (err != NULL) {
        part_stored(release->call, err);
    } else {
        store_release(release);
    }
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Release *release = ctx;
    PreferenceCall *call = release->call;
    Error own = {0};
    Stentor__V1__Suppression *entry =
        err != NULL || payload.len == 0
            ? NULL
            : (Stentor__V1__Suppression *)event_unpack(
                  &stentor__v1__suppression__descriptor, payload, call->http->arena, &own);
    bool ours = entry != NULL && entry->released_at_us == 0 &&
                entry->reason == STENTOR__V1__SUPPRESSION_REASON__SUPPRESSION_REASON_OPT_OUT;
    if (err != NULL || own.kind != ERROR_NONE || !ours) {
        part_stored(call, err != NULL ? err : own.kind != ERROR_NONE ? &own : NULL);
        return;
    }
    release->entry = entry;
    release->replaces = sequence;
    entry->released_at_us = call->http->received_at_us;
    entry->released_by = arena_cstr(call->http->arena, str_from(call->said_by));
    suppression_note_release(call->parts->audit, entry, on_release_noted, release);
}

static void release_opt_out(PreferenceCall *call, Category category)
{
    Arena *arena = call->http->arena;
    char key[SUPPRESSION_KEY_SIZE];
    Release *release = arena_zalloc(arena, sizeof *release);
    *release = (Release){.call = call, .subject = arena_alloc(arena, SUBJECT_SIZE)};
    suppression_key(key, CHANNEL_EMAIL, category, call->address_hash);
    subject_config(release->subject, "suppression", call->tenant, str_from(key));
    call->waiting++;
    config_read(call->parts->bus, release->subject, arena, on_entry_read, release);
}

// The new ones before the old one of every category ends, so that nothing is open in between: a
// repeat after a kill stores what is missing.
static void store_address(PreferenceCall *call)
{
    bool has_address = call->address_hash != NULL;
    call->waiting = 1; // ours, so that no answer comes before all have begun
    for (int category = CATEGORY_NONE; has_address && category < CATEGORY_COUNT; category++) {
        if (call->plan.suppress[category]) {
            store_opt_out(call, (Category)category);
        }
    }
    for (int category = CATEGORY_COUNT - 1; has_address && category >= CATEGORY_NONE; category--) {
        if (call->plan.release[category]) {
            release_opt_out(call, (Category)category);
        }
    }
    part_stored(call, NULL);
}

const char *preference_store_unready(const PreferenceParts *parts)
{
    return recipients_write_unready(parts->bus);
}

// ---- storing preferences ----

static void on_facts_written(void *ctx, const Error *err)
{
    PreferenceCall *call = ctx;
    const Error *failed = err;
    for (size_t i = 0; failed == NULL && i < call->plan.fact_count; i++) {
        failed = call->plan.facts[i].error.kind != ERROR_NONE ? &call->plan.facts[i].error : NULL;
    }
    if (failed != NULL) {
        call->done(call, failed);
    } else {
        store_address(call);
    }
}

void preference_store(PreferenceCall *call)
{
    const PreferenceParts *parts = call->parts;
    preference_plan(&call->state, call->choices, call->count, &call->plan);
    if (call->plan.fact_count == 0) {
        store_address(call);
        return;
    }
    for (size_t i = 0; i < call->plan.fact_count; i++) {
        call->plan.facts[i].recipient_id = call->recipient_id;
    }
    call->write = (RecipientsWrite){
        .bus = parts->bus,
        .keyring = parts->keyring,
        .wait = parts->wait,
        .arena = call->http->arena,
        .tenant = call->tenant,
        .said_by = str_from(call->said_by),
        .facts = call->plan.facts,
        .count = call->plan.fact_count,
        .done = on_facts_written,
        .ctx = call,
    };
    recipients_write(&call->write);
}

// ---- what stands ----

static void take_opt_outs(PreferenceCall *call)
{
    for (int category = CATEGORY_NONE; category < CATEGORY_COUNT; category++) {
        call->state.opted_out[category] =
            call->address_hash != NULL &&
            suppressions_of_entry(
                call->parts->known, call->tenant, CHANNEL_EMAIL, (Category)category,
                call->address_hash, call->http->received_at_us) == SUPPRESSION_OPT_OUT;
    }
}

static void take_choices(PreferenceCall *call)
{
    take_opt_outs(call);
    call->count = preference_choices(&call->state, call->choices);
    call->done(call, NULL);
}

// The hash of a recipient's first address, where the call has none.
static void take_address(PreferenceCall *call, const PGresult *rows)
{
    if (call->address_hash == NULL && !db_is_null(rows, 0, 2)) {
        Str hash = db_get_text(rows, 0, 2);
        call->address_hash = hash.len == ADDRESS_HASH_LEN
                                 ? (const uint8_t *)arena_str(call->http->arena, hash).ptr
                                 : NULL;
    }
}

static void take_record(PreferenceCall *call, const PGresult *rows)
{
    if (db_rows(rows) == 0) {
        return;
    }
    Str rest = db_get_text(rows, 0, 1);
    Str name;
    call->state.has_record = true;
    call->state.unsubscribed = db_get_int(rows, 0, 0) != 0;
    while (rest.len > 0) {
        ptrdiff_t end = str_find(rest, ' ');
        name = end < 0 ? rest : str_slice(rest, 0, (size_t)end);
        rest = end < 0 ? STR_EMPTY : str_slice(rest, (size_t)end + 1, rest.len);
        Channel channel = CHANNEL_NONE;
        (void)channel_from_name(name, &channel);
        call->state.channels[channel] = true;
    }
    take_address(call, rows);
}

static void take_entries(PreferenceCall *call, const PGresult *rows)
{
    size_t count = (size_t)db_rows(rows);
    PersonPreference *entries = arena_array(call->http->arena, count + 1, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        int row = (int)i;
        (void)category_from_name(db_get_text(rows, row, 0), &entries[i].category);
        (void)channel_from_name(db_get_text(rows, row, 1), &entries[i].channel);
        entries[i].off = db_get_int(rows, row, 2) != 0;
        (void)frequency_from_name(db_get_text(rows, row, 3), &entries[i].frequency);
        entries[i].at_minute = (uint32_t)db_get_int(rows, row, 4);
        entries[i].on_weekday = (uint32_t)db_get_int(rows, row, 5);
    }
    call->state.entries = entries;
    call->state.entry_count = count;
}

static void on_looked_up(void *ctx, DbTxn *txn, const Error *err)
{
    PreferenceCall *call = ctx;
    if (err != NULL) {
        call->done(call, err);
        return;
    }
    take_record(call, db_txn_result(txn, 1));
    take_entries(call, db_txn_result(txn, 2));
    take_choices(call);
}

void preference_look_up(PreferenceCall *call)
{
    if (call->recipient_id.len == 0) {
        take_choices(call);
        return;
    }
    DbTxn *txn = db_txn_new(call->parts->pool);
    db_txn_tenant(txn, call->tenant);
    people_sql_replan(txn);
    const DbStatement *const statements[] = {&RECORD, &people_preferences_sql};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        DbParams *p = db_txn_add(txn, statements[i], NULL);
        db_text(p, call->tenant);
        db_text(p, call->recipient_id);
    }
    db_txn_submit(txn, on_looked_up, call);
}
