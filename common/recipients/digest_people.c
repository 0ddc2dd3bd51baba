// SPDX-License-Identifier: Apache-2.0
// Of two events about the same part the later wins, so a flush keeps one map of parts; each
// statement then touches each row once.
#include "common/recipients/digest_people.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/enums.h"
#include "stentor/v1/people.pb-c.h"

enum { RECIPIENT_MAX = 64 };

typedef Stentor__V1__PersonEvent PersonEvent;

typedef struct Recipient {
    Str tenant, id;
    bool removed_once; // delete the recipient's rows first
    bool is_removed, knows_removed;
    bool is_unsubscribed, knows_unsubscribed;
    int64_t changed_at_us; // the last change that may concern an open window; 0: none
    struct Recipient *next;
} Recipient;

typedef struct Entry {
    const Recipient *recipient;
    Str category, channel;
    bool is_consent; // else a preference
    bool is_granted; // of a consent
    bool is_off, is_immediate, is_cleared;
    struct Entry *next;
} Entry;

struct DigestPeople {
    Map *recipients; // by tenant, recipient
    Map *entries;    // by tenant, recipient, category, channel
    Recipient *first_recipient;
    Entry *first_entry;
};

// ---- folding ----

DigestPeople *digest_people_new(void)
{
    DigestPeople *people = xcalloc(1, sizeof *people);
    people->recipients = map_new(NULL);
    people->entries = map_new(NULL);
    return people;
}

void digest_people_free(DigestPeople *people)
{
    if (people != NULL) {
        map_free(people->recipients);
        map_free(people->entries);
        free(people);
    }
}

void digest_people_clear(DigestPeople *people)
{
    map_free(people->recipients);
    map_free(people->entries);
    *people = (DigestPeople){.recipients = map_new(NULL), .entries = map_new(NULL)};
}

size_t digest_people_count(const DigestPeople *people)
{
    return map_count(people->recipients) + map_count(people->entries);
}

static Recipient *recipient_of(DigestPeople *people, const PersonEvent *event, Arena *arena)
{
    Str name = str_from(arena_printf(arena, "%s %s", event->meta->tenant, event->recipient_id));
    Recipient *recipient = map_get(people->recipients, name);
    if (recipient == NULL) {
        recipient = arena_zalloc(arena, sizeof *recipient);
        recipient->tenant = arena_str(arena, str_from(event->meta->tenant));
        recipient->id = arena_str(arena, str_from(event->recipient_id));
        recipient->next = people->first_recipient;
        people->first_recipient = recipient;
        map_put(people->recipients, name, recipient);
    }
    return recipient;
}

// The recipient's preference or consent that `change` replaces: a zeroed or an older one.
static Entry *entry_of(DigestPeople *people, const Entry *change, Arena *arena)
{
    const Recipient *recipient = change->recipient;
    Str name = str_from(arena_printf(
        arena, "%s " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT, change->is_consent ? "c" : "p",
        STR_ARG(recipient->tenant), STR_ARG(recipient->id), STR_ARG(change->category),
        STR_ARG(change->channel)));
    Entry *entry = map_get(people->entries, name);
    if (entry == NULL) {
        entry = arena_zalloc(arena, sizeof *entry);
        entry->next = people->first_entry;
        people->first_entry = entry;
        map_put(people->entries, name, entry);
    }
    return entry;
}

static void fold_entry(DigestPeople *people, Entry change, Arena *arena)
{
    Entry *entry = entry_of(people, &change, arena);
    change.next = entry->next;
    *entry = change;
}

static Str category_text(Stentor__V1__Category category)
{
    return category == 0 ? STR("any") : str_from(category_name((Category)category));
}

static Str channel_text(Stentor__V1__Channel channel)
{
    return channel == 0 ? STR("any") : str_from(channel_name((Channel)channel));
}

static void fold_preference(
    DigestPeople *people, Recipient *recipient, const Stentor__V1__Preference *change, Arena *arena)
{
    Entry entry = {
        .recipient = recipient,
        .category = category_text(change->category),
        .channel = channel_text(change->channel),
        .is_off = change->off,
        .is_immediate = change->frequency <= STENTOR__V1__FREQUENCY__FREQUENCY_IMMEDIATE,
        .is_cleared = change->cleared,
    };
    fold_entry(people, entry, arena);
}

static void fold_consent(
    DigestPeople *people, Recipient *recipient, const Stentor__V1__Consent *change, Arena *arena)
{
    Entry entry = {
        .recipient = recipient,
        .category = category_text(change->category),
        .channel = channel_text(change->channel),
        .is_consent = true,
        .is_granted = change->granted,
    };
    fold_entry(people, entry, arena);
}

// Entries from before the removal must not be written after it.
static void fold_removal(const DigestPeople *people, Recipient *recipient)
{
    for (Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->recipient == recipient) {
            entry->is_cleared = true;
        }
    }
    recipient->removed_once = true;
    recipient->is_removed = recipient->knows_removed = true;
    recipient->is_unsubscribed = false;
    recipient->knows_unsubscribed = true;
}

static bool check_place(const char *what, int category, int channel, Error *err)
{
    if ((unsigned)category >= CATEGORY_COUNT || (unsigned)channel >= CHANNEL_COUNT) {
        return error_set(
            err, ERROR_PERMANENT, "%s: category %d or channel %d is unknown", what, category,
            channel);
    }
    return true;
}

static bool check_event(const PersonEvent *event, Error *err)
{
    if (event->meta == NULL || !id_is_tenant(str_from(event->meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "meta.tenant is not a tenant id");
    }
    Str recipient = str_from(event->recipient_id);
    if (recipient.len == 0 || recipient.len > RECIPIENT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "recipient_id has %zu bytes instead of 1 to %d", recipient.len,
            RECIPIENT_MAX);
    }
    switch (event->part_case) {
    case STENTOR__V1__PERSON_EVENT__PART_PREFERENCE:
        if ((unsigned)event->preference->frequency >= FREQUENCY_COUNT) {
            return error_set(
                err, ERROR_PERMANENT, "preference: frequency %d is unknown",
                (int)event->preference->frequency);
        }
        return check_place(
            "preference", (int)event->preference->category, (int)event->preference->channel, err);
    case STENTOR__V1__PERSON_EVENT__PART_CONSENT:
        return check_place(
            "consent", (int)event->consent->category, (int)event->consent->channel, err);
    default:
        return true;
    }
}

bool digest_people_fold(DigestPeople *people, const BusMessage *message, Arena *arena, Error *err)
{
    const PersonEvent *event = (const PersonEvent *)event_unpack(
        &stentor__v1__person_event__descriptor, message->payload, arena, err);
    if (event == NULL || !check_event(event, err)) {
        return false;
    }
    Recipient *recipient;
    switch (event->part_case) {
    case STENTOR__V1__PERSON_EVENT__PART_RECIPIENT:
        recipient = recipient_of(people, event, arena);
        recipient->is_removed = false;
        recipient->knows_removed = true;
        return true;
    case STENTOR__V1__PERSON_EVENT__PART_PREFERENCE:
        recipient = recipient_of(people, event, arena);
        fold_preference(people, recipient, event->preference, arena);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_REMOVAL:
        recipient = recipient_of(people, event, arena);
        fold_removal(people, recipient);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION:
        recipient = recipient_of(people, event, arena);
        recipient->is_unsubscribed = event->unsubscription->unsubscribed;
        recipient->knows_unsubscribed = true;
        break;
    case STENTOR__V1__PERSON_EVENT__PART_CONSENT:
        recipient = recipient_of(people, event, arena);
        fold_consent(people, recipient, event->consent, arena);
        break;
    default: // a part of a later version
        return true;
    }
    recipient->changed_at_us = message->stored_at_us;
    return true;
}

// ---- writing ----

// clang-format off
static const DbStatement remove_all = {
    .name = "people_remove",
    .sql =
    "DELETE FROM digest_flusher.preferences p USING unnest($1::text[], $2::text[]) AS i(tenant_id, recipient_id)"
    " WHERE p.tenant_id = i.tenant_id AND p.recipient_id = i.recipient_id",
};
static const DbStatement remove_consents = {
    .name = "people_remove_consents",
    .sql =
    "DELETE FROM digest_flusher.consents c USING unnest($1::text[], $2::text[]) AS i(tenant_id, recipient_id)"
    " WHERE c.tenant_id = i.tenant_id AND c.recipient_id = i.recipient_id",
};
static const DbStatement put_consents = {
    .name = "people_consent",
    .sql =
    "INSERT INTO digest_flusher.consents (tenant_id, recipient_id, category, channel, is_granted)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[])"
    " ON CONFLICT (tenant_id, recipient_id, category, channel) DO UPDATE SET is_granted = excluded.is_granted",
};
static const DbStatement put_entries = {
    .name = "people_put",
    .sql =
    "INSERT INTO digest_flusher.preferences (tenant_id, recipient_id, category, channel, is_off, is_immediate)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[], $6::bool[])"
    " ON CONFLICT (tenant_id, recipient_id, category, channel)"
    " DO UPDATE SET is_off = excluded.is_off, is_immediate = excluded.is_immediate",
};
static const DbStatement clear_entries = {
    .name = "people_clear",
    .sql =
    "DELETE FROM digest_flusher.preferences p"
    " USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS i(tenant_id, recipient_id, category, channel)"
    " WHERE p.tenant_id = i.tenant_id AND p.recipient_id = i.recipient_id AND p.category = i.category"
    "  AND p.channel = i.channel",
};
// NULL: not changed.
static const DbStatement put_unsubscribed = {
    .name = "people_unsubscribe",
    .sql =
    "INSERT INTO digest_flusher.unsubscribed_recipients AS s (tenant_id, recipient_id, is_removed, is_unsubscribed)"
    " SELECT i.tenant_id, i.recipient_id, coalesce(i.is_removed, o.is_removed, false),"
    "  coalesce(i.is_unsubscribed, o.is_unsubscribed, false)"
    " FROM unnest($1::text[], $2::text[], $3::bool[], $4::bool[]) AS i(tenant_id, recipient_id, is_removed, is_unsubscribed)"
    " LEFT JOIN digest_flusher.unsubscribed_recipients o ON o.tenant_id = i.tenant_id AND o.recipient_id = i.recipient_id"
    " WHERE o.tenant_id IS NOT NULL OR i.is_removed OR i.is_unsubscribed"
    " ON CONFLICT (tenant_id, recipient_id)"
    " DO UPDATE SET is_removed = excluded.is_removed, is_unsubscribed = excluded.is_unsubscribed",
};
static const DbStatement drop_unsubscribed = {
    .name = "people_resubscribe",
    .sql =
    "DELETE FROM digest_flusher.unsubscribed_recipients s USING unnest($1::text[], $2::text[]) AS i(tenant_id, recipient_id)"
    " WHERE s.tenant_id = i.tenant_id AND s.recipient_id = i.recipient_id AND NOT s.is_removed AND NOT s.is_unsubscribed",
};
// Only windows that were open at the change: PEOPLE is sometimes read again from its start.
static const DbStatement reconsider = {
    .name = "people_reconsider",
    .sql =
    "UPDATE digest_flusher.digest_windows w SET due_at = now()"
    " FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS i(tenant_id, recipient_id, said_at)"
    " WHERE w.tenant_id = i.tenant_id AND w.recipient_id = i.recipient_id AND w.state = 'open'"
    "  AND w.opened_at < i.said_at AND w.due_at > now()"
    "  AND digest_flusher.digest_verdict(w.tenant_id, w.recipient_id, w.category, w.channel) IS NOT NULL",
};
// clang-format on

typedef struct RecipientArrays {
    DbArray *tenant, *recipient;
} RecipientArrays;

static DbParams *add_recipients(DbTxn *txn, const DbStatement *statement, RecipientArrays *ret)
{
    DbParams *params = db_txn_add(txn, statement, NULL);
    ret->tenant = db_array(params, DB_TEXT);
    ret->recipient = db_array(params, DB_TEXT);
    return params;
}

static void push_recipient(DbTxn *txn, const RecipientArrays *arrays, const Recipient *recipient)
{
    db_txn_tenant(txn, recipient->tenant);
    db_push_text(arrays->tenant, recipient->tenant);
    db_push_text(arrays->recipient, recipient->id);
}

static void write_removals(const DigestPeople *people, DbTxn *txn, const DbStatement *statement)
{
    RecipientArrays arrays;
    add_recipients(txn, statement, &arrays);
    for (const Recipient *p = people->first_recipient; p != NULL; p = p->next) {
        if (p->removed_once) {
            push_recipient(txn, &arrays, p);
        }
    }
}

// A cleared consent is from before a removal, which has deleted it.
static void write_consents(const DigestPeople *people, DbTxn *txn)
{
    RecipientArrays arrays;
    DbParams *params = add_recipients(txn, &put_consents, &arrays);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *is_granted = db_array(params, DB_BOOL);
    for (const Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->is_consent && !entry->is_cleared) {
            push_recipient(txn, &arrays, entry->recipient);
            db_push_text(category, entry->category);
            db_push_text(channel, entry->channel);
            db_push_int(is_granted, entry->is_granted);
        }
    }
}

static void write_entries(const DigestPeople *people, DbTxn *txn, bool cleared)
{
    RecipientArrays arrays;
    DbParams *params = add_recipients(txn, cleared ? &clear_entries : &put_entries, &arrays);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *is_off = cleared ? NULL : db_array(params, DB_BOOL);
    DbArray *is_immediate = cleared ? NULL : db_array(params, DB_BOOL);
    for (const Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->is_consent || entry->is_cleared != cleared) {
            continue;
        }
        push_recipient(txn, &arrays, entry->recipient);
        db_push_text(category, entry->category);
        db_push_text(channel, entry->channel);
        if (!cleared) {
            db_push_int(is_off, entry->is_off);
            db_push_int(is_immediate, entry->is_immediate);
        }
    }
}

static void push_known(DbArray *array, bool known, bool value)
{
    if (known) {
        db_push_int(array, value);
    } else {
        db_push_null(array);
    }
}

static void write_unsubscribed(const DigestPeople *people, DbTxn *txn)
{
    RecipientArrays arrays;
    DbParams *params = add_recipients(txn, &put_unsubscribed, &arrays);
    DbArray *is_removed = db_array(params, DB_BOOL);
    DbArray *is_unsubscribed = db_array(params, DB_BOOL);
    for (const Recipient *p = people->first_recipient; p != NULL; p = p->next) {
        if (p->knows_removed || p->knows_unsubscribed) {
            push_recipient(txn, &arrays, p);
            push_known(is_removed, p->knows_removed, p->is_removed);
            push_known(is_unsubscribed, p->knows_unsubscribed, p->is_unsubscribed);
        }
    }
    add_recipients(txn, &drop_unsubscribed, &arrays);
    for (const Recipient *p = people->first_recipient; p != NULL; p = p->next) {
        push_recipient(txn, &arrays, p);
    }
}

static void write_windows(const DigestPeople *people, DbTxn *txn)
{
    RecipientArrays arrays;
    DbParams *params = add_recipients(txn, &reconsider, &arrays);
    DbArray *said_at = db_array(params, DB_TIME);
    for (const Recipient *p = people->first_recipient; p != NULL; p = p->next) {
        if (p->changed_at_us > 0) {
            push_recipient(txn, &arrays, p);
            db_push_time(said_at, p->changed_at_us);
        }
    }
}

void digest_people_write(const DigestPeople *people, DbTxn *txn)
{
    if (digest_people_count(people) == 0) {
        return;
    }
    write_removals(people, txn, &remove_all);
    write_removals(people, txn, &remove_consents);
    write_entries(people, txn, true);
    write_entries(people, txn, false);
    write_consents(people, txn);
    write_unsubscribed(people, txn);
}

void digest_people_wake(const DigestPeople *people, DbTxn *txn)
{
    if (digest_people_count(people) > 0) {
        write_windows(people, txn);
    }
}
