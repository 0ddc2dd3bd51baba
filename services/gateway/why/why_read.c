// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/why_read.h"

#include <stdio.h>

#include "common/base/id.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/config_entry.h"
#include "common/deadletter/letter.h"

// clang-format off
static const DbStatement DETAILS = {"why_details",
    "SELECT gate_trace, address_hash, source_event_id, digest_window_id, copy_of"
    " FROM stentor.notification_details($1::text, $2::timestamptz, $3::text)"};
static const DbStatement WAITS = {"why_waits",
    "SELECT reason, due_at, window_id, digest_id FROM digest_flusher.notification_waits($1::text, $2::text, $3::text[], $4::text)"};
static const DbStatement CLAIM = {"why_claim",
    "SELECT attempt, state, vendor, claimed_at, lease_until, due_at, unknown_count"
    " FROM dispatcher.notification_claim($1::text, $2::timestamptz, $3::text)"};
static const DbStatement PERSON = {"why_person",
    "SELECT unsubscribed_at FROM people.recipients WHERE tenant_id = $1::text AND recipient_id = $2::text"};
static const DbStatement CONSENTS = {"why_consents",
    "SELECT category, channel, is_granted, source, given_at FROM people.consents"
    " WHERE tenant_id = $1::text AND recipient_id = $2::text ORDER BY category, channel LIMIT 100"};
static const DbStatement PREFERENCES = {"why_preferences",
    "SELECT category, channel, is_off, updated_at FROM people.preferences"
    " WHERE tenant_id = $1::text AND recipient_id = $2::text AND NOT is_cleared ORDER BY category, channel LIMIT 100"};
// clang-format on

enum {
    DEAD_LOOKED_MAX = 5000,
    SUPPRESSIONS_LOOKED_MAX = 256,
};
static const int64_t before_us = INT64_C(60) * 1000000; // clocks of two machines differ by less
static const int64_t after_us = INT64_C(600) * 1000000; // a dead letter follows its end at once

typedef struct Reading {
    const WhyReader *reader;
    ApiCall *base;
    Str id;                // of the notification
    int64_t created_at_us; // the time in it
    bool ahead;            // it does not exist
    Arena *arena;
    HistoryRow row;
    WhyFacts facts;
    WhySuppression suppressions[WHY_SUPPRESSIONS_MAX];
    char filter[2 * SUBJECT_SIZE];
    WhyReadDone done;
    void *ctx;
} Reading;

static Str tenant_of(const Reading *r)
{
    return str_from(r->base->tenant);
}

static Str text_of(const Reading *r, const PGresult *rows, int row, int column)
{
    return arena_str(r->arena, db_get_text(rows, row, column));
}

// ---- what came of it in DEAD ----

static void finish(Reading *r)
{
    r->done(r->ctx, &r->facts);
}

// The last one counts: it may have been sent again and have failed again.
static bool on_letter(void *ctx, const BusMessage *message)
{
    Reading *r = ctx;
    Arena *scratch = arena_new(0);
    Letter letter;
    letter_read(message, scratch, &letter);
    if (str_eq(str_from(letter.notification_id), r->id) && letter_holds_work(&letter)) {
        r->facts.dead = (WhyDead){
            .sequence = letter.sequence,
            .stage = arena_str(r->arena, letter.stage),
            .reason = letter.body == NULL
                          ? STR_EMPTY
                          : arena_str(r->arena, str_slice(str_from(letter.body->reason), 0, 512)),
            .stored_us = letter.stored_at_us};
    }
    arena_free(scratch);
    return true;
}

static void on_letters_read(void *ctx, bool whole)
{
    Reading *r = ctx;
    r->facts.dead_unread = !whole;
    finish(r);
}

static void read_dead(Reading *r)
{
    int64_t ended_us = r->row.at_us[FOLD_ENDED];
    if (r->row.status != STATUS_FAILED || ended_us == 0) {
        finish(r);
        return;
    }
    (void)snprintf(r->filter, sizeof r->filter, "ntf.dead.*.%s", r->base->tenant);
    // After a resend its last letter is younger than its first end.
    bool again = r->facts.attempt_count > 0 &&
                 r->facts.attempts[r->facts.attempt_count - 1].finished_us > ended_us + after_us;
    stream_scan(
        r->reader->scans, &(StreamScanQuery){
                              .stream = "DEAD",
                              .filter = r->filter,
                              .from_us = ended_us - before_us,
                              .to_us = again ? 0 : ended_us + after_us,
                              .at_most = DEAD_LOOKED_MAX,
                              .each = on_letter,
                              .done = on_letters_read,
                              .ctx = r,
                          });
}

// ---- suppressions ----

// One message is an entry as it was then; the last one of an id counts.
static void take_suppression(Reading *r, const Stentor__V1__Suppression *entry)
{
    Str id = str_from(entry->id);
    WhySuppression *place = NULL;
    for (size_t i = 0; i < r->facts.suppression_count; i++) {
        place = str_eq(r->suppressions[i].id, id) ? &r->suppressions[i] : place;
    }
    if (place == NULL && r->facts.suppression_count == WHY_SUPPRESSIONS_MAX) {
        return;
    }
    if (place == NULL) {
        place = &r->suppressions[r->facts.suppression_count++];
    }
    *place = (WhySuppression){
        .id = arena_str(r->arena, id),
        .category = (Category)entry->category,
        .reason = (SuppressionReason)entry->reason,
        .made_us = entry->created_at_us,
        .expires_us = entry->expires_at_us,
        .released_us = entry->released_at_us,
        .made_by = arena_str(r->arena, str_from(entry->created_by)),
        .released_by = arena_str(r->arena, str_from(entry->released_by)),
    };
}

static bool on_suppression(void *ctx, const BusMessage *message)
{
    Reading *r = ctx;
    Arena *scratch = arena_new(0);
    ConfigName name;
    Error err = {0};
    Stentor__V1__Suppression *entry = NULL;
    if (config_entry_check(message, &name, scratch, &err)) {
        entry = suppression_read(name.tenant, name.key, message->payload, scratch, &err);
    }
    if (entry != NULL) { // the mirror has logged what it could not read
        take_suppression(r, entry);
    }
    arena_free(scratch);
    return true;
}

static void on_suppressions_read(void *ctx, bool whole)
{
    Reading *r = ctx;
    r->facts.suppressions = r->suppressions;
    r->facts.suppressions_unread = !whole;
    read_dead(r);
}

static void read_suppressions(Reading *r)
{
    Str hash = r->row.text[FOLD_ADDRESS_HASH];
    Str channel = r->row.text[FOLD_CHANNEL];
    char hex[2 * ADDRESS_HASH_LEN + 1];
    if (hash.len != ADDRESS_HASH_LEN || channel.len == 0) {
        read_dead(r);
        return;
    }
    hex_encode(hash.ptr, hash.len, hex);
    (void)snprintf(
        r->filter, sizeof r->filter, "cfg.suppression.%s." STR_FMT ".*.%s", r->base->tenant,
        STR_ARG(channel), hex);
    stream_scan(
        r->reader->scans, &(StreamScanQuery){
                              .stream = "CONFIG",
                              .filter = r->filter,
                              .at_most = SUPPRESSIONS_LOOKED_MAX,
                              .each = on_suppression,
                              .done = on_suppressions_read,
                              .ctx = r,
                          });
}

// ---- what is in memory ----

static const char *state_name(Stentor__V1__TemplateStatus status)
{
    switch ((int)status) {
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT:
        return "draft";
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE:
        return "active";
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED:
        return "archived";
    default:
        return "";
    }
}

static void find_template(Reading *r)
{
    const Str owners[] = {tenant_of(r), STR("platform")};
    CatalogName name = {.key = r->row.text[FOLD_TEMPLATE]};
    CatalogVersion version;
    (void)channel_from_name(r->row.text[FOLD_CHANNEL], &name.channel);
    for (size_t i = 0; i < 2 && name.key.len > 0 && r->facts.template_state.len == 0; i++) {
        if (catalog_find(
                r->reader->catalog, owners[i], name, r->row.text[FOLD_TEMPLATE_VERSION],
                &version)) {
            r->facts.template_state = str_from(state_name(version.status));
        }
    }
    r->facts.down = &r->reader->waits[name.channel];
}

// ---- Postgres ----

static Category category_of(Str name)
{
    Category category = CATEGORY_NONE;
    (void)category_from_name(name, &category); // "any": none
    return category;
}

static Channel channel_of(Str name)
{
    Channel channel = CHANNEL_NONE;
    (void)channel_from_name(name, &channel);
    return channel;
}

static void take_waits(Reading *r, const PGresult *rows)
{
    for (int i = 0; i < db_rows(rows); i++) {
        if (!db_is_null(rows, i, 3)) {
            r->facts.digest_id = text_of(r, rows, i, 3);
        } else {
            r->facts.wait = (WhyWait){
                .reason = text_of(r, rows, i, 0),
                .due_us = db_get_time(rows, i, 1),
                .window_id = text_of(r, rows, i, 2)};
        }
    }
}

static void take_claim(Reading *r, const PGresult *rows)
{
    if (db_rows(rows) > 0) {
        r->facts.claim = (WhyClaim){
            .number = db_get_int(rows, 0, 0),
            .state = text_of(r, rows, 0, 1),
            .vendor = text_of(r, rows, 0, 2),
            .claimed_us = db_get_time(rows, 0, 3),
            .lease_us = db_get_time(rows, 0, 4),
            .due_us = db_get_time(rows, 0, 5),
            .unknown = db_get_int(rows, 0, 6)};
    }
}

static void take_consents(Reading *r, const PGresult *rows)
{
    size_t count = (size_t)db_rows(rows);
    WhyConsent *consents = arena_array(r->arena, count + 1, sizeof *consents);
    for (size_t i = 0; i < count; i++) {
        consents[i] = (WhyConsent){
            .category = category_of(db_get_text(rows, (int)i, 0)),
            .channel = channel_of(db_get_text(rows, (int)i, 1)),
            .granted = db_get_int(rows, (int)i, 2) != 0,
            .source = text_of(r, rows, (int)i, 3),
            .given_us = db_get_time(rows, (int)i, 4)};
    }
    r->facts.person.consents = consents;
    r->facts.person.consent_count = count;
}

static void take_preferences(Reading *r, const PGresult *rows)
{
    size_t count = (size_t)db_rows(rows);
    WhyPreference *preferences = arena_array(r->arena, count + 1, sizeof *preferences);
    for (size_t i = 0; i < count; i++) {
        preferences[i] = (WhyPreference){
            .category = category_of(db_get_text(rows, (int)i, 0)),
            .channel = channel_of(db_get_text(rows, (int)i, 1)),
            .off = db_get_int(rows, (int)i, 2) != 0,
            .changed_us = db_get_time(rows, (int)i, 3)};
    }
    r->facts.person.preferences = preferences;
    r->facts.person.preference_count = count;
}

static void on_around(void *ctx, DbTxn *txn, const Error *err)
{
    Reading *r = ctx;
    if (err != NULL) {
        api_answer_failure(r->base, err);
        return;
    }
    int at = 0;
    if (!r->ahead) {
        take_waits(r, db_txn_result(txn, at++));
        take_claim(r, db_txn_result(txn, at++));
    }
    if (r->row.text[FOLD_RECIPIENT].len > 0) {
        const PGresult *person = db_txn_result(txn, at++);
        r->facts.person.known = db_rows(person) > 0;
        r->facts.person.unsubscribed_us = db_rows(person) > 0 ? db_get_time(person, 0, 0) : 0;
        take_consents(r, db_txn_result(txn, at++));
        take_preferences(r, db_txn_result(txn, at));
    }
    find_template(r);
    read_suppressions(r);
}

static void add_key(const Reading *r, DbParams *p)
{
    db_text(p, tenant_of(r));
    db_time(p, r->created_at_us);
    db_text(p, r->id);
}

// Of a deferral, its notification's and its reason's (services/ingest/accept).
static void add_work_ids(DbParams *p, Str id)
{
    static const char *const reasons[] = {"schedule", "quiet", "limit", "digest"};
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        char work_id[EVENT_ID_SIZE];
        event_id_derive("deferred", id, str_from(reasons[i]), work_id);
        db_push_text(ids, str_from(work_id));
    }
}

static void add_waits(const Reading *r, DbParams *p)
{
    Str window = r->row.text[FOLD_DIGEST];
    db_text(p, tenant_of(r));
    db_text(p, r->id);
    add_work_ids(p, r->id);
    if (window.len > 0) {
        db_text(p, window);
    } else {
        db_null(p);
    }
}

static void read_around(Reading *r)
{
    static const DbStatement *const people[] = {&PERSON, &CONSENTS, &PREFERENCES};
    Str recipient = r->row.text[FOLD_RECIPIENT];
    if (r->ahead && recipient.len == 0) {
        find_template(r);
        read_suppressions(r);
        return;
    }
    DbTxn *txn = db_txn_new(r->reader->pools.primary);
    db_txn_tenant(txn, tenant_of(r));
    if (!r->ahead) {
        add_waits(r, db_txn_add(txn, &WAITS, NULL));
        add_key(r, db_txn_add(txn, &CLAIM, NULL));
    }
    for (size_t i = 0; i < 3 && recipient.len > 0; i++) {
        DbParams *p = db_txn_add(txn, people[i], NULL);
        db_text(p, tenant_of(r));
        db_text(p, recipient);
    }
    db_txn_submit(txn, on_around, r);
}

static void on_details(void *ctx, DbTxn *txn, const Error *err)
{
    Reading *r = ctx;
    if (err != NULL) {
        api_answer_failure(r->base, err);
        return;
    }
    static const FoldText columns[] = {
        FOLD_GATE_TRACE, FOLD_ADDRESS_HASH, FOLD_SOURCE_EVENT, FOLD_DIGEST, FOLD_COPY_OF};
    const PGresult *rows = db_txn_result(txn, 0);
    for (int i = 0; i < 5 && db_rows(rows) > 0; i++) {
        r->row.text[columns[i]] = text_of(r, rows, 0, i);
    }
    r->facts.gate_trace = r->row.text[FOLD_GATE_TRACE];
    read_around(r);
}

static Reading *new_reading(
    const WhyReader *reader, ApiCall *base, const HistoryRow *row, WhyReadDone done, void *ctx)
{
    Reading *r = arena_zalloc(base->http->arena, sizeof *r);
    *r = (Reading){
        .reader = reader,
        .base = base,
        .arena = base->http->arena,
        .id = row->id,
        .created_at_us = row->created_at_us,
        .row = *row,
        .done = done,
        .ctx = ctx,
    };
    r->facts = (WhyFacts){
        .now_us = base->http->received_at_us,
        .row = &r->row,
        .gate_trace = row->text[FOLD_GATE_TRACE],
    };
    return r;
}

void why_read(
    const WhyReader *reader, const NotificationRead *notification, WhyReadDone done, void *ctx)
{
    Reading *r = new_reading(reader, notification->base, &notification->row, done, ctx);
    r->id = notification->id;
    r->created_at_us = notification->created_at_us;
    r->facts.in_history = notification->in_history;
    r->facts.attempts = notification->attempts;
    r->facts.attempt_count = notification->attempt_count;
    r->facts.attempts_before = notification->attempts_before;
    if (!notification->in_history) {
        read_around(r);
        return;
    }
    DbTxn *txn = db_txn_new(reader->pools.history);
    add_key(r, db_txn_add(txn, &DETAILS, NULL));
    db_txn_submit(txn, on_details, r);
}

void why_read_ahead(
    const WhyReader *reader, ApiCall *base, const HistoryRow *row, WhyReadDone done, void *ctx)
{
    Reading *r = new_reading(reader, base, row, done, ctx);
    r->ahead = true;
    read_around(r);
}
