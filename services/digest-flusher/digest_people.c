// SPDX-License-Identifier: Apache-2.0
// Of two events about the same part the later wins, so a map of parts is all that a flush has to
// remember; statements then touch each row once.
#include "services/digest-flusher/digest_people.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/model/enums.h"
#include "stentor/v1/people.pb-c.h"

enum { RECIPIENT_MAX = 64 };

typedef Stentor__V1__PersonEvent PersonEvent;

typedef struct Person {
    Str tenant, recipient;
    bool removed_once; // what is known of the recipient is to be deleted first
    bool is_removed, knows_removed;
    bool is_unsubscribed, knows_unsubscribed;
    int64_t said_at_us; // the last that may concern an open window; 0: nothing
    struct Person *next;
} Person;

typedef struct Entry {
    const Person *person;
    Str category, channel;
    bool is_consent; // else a preference
    bool is_granted; // of a consent
    bool is_off, is_immediate, is_cleared;
    struct Entry *next;
} Entry;

struct DigestPeople {
    Map *persons; // by tenant, recipient
    Map *entries; // by tenant, recipient, category, channel
    Person *first_person;
    Entry *first_entry;
};

// ---- folding ----

DigestPeople *digest_people_new(void)
{
    DigestPeople *people = xcalloc(1, sizeof *people);
    people->persons = map_new(NULL);
    people->entries = map_new(NULL);
    return people;
}

void digest_people_free(DigestPeople *people)
{
    if (people != NULL) {
        map_free(people->persons);
        map_free(people->entries);
        free(people);
    }
}

void digest_people_clear(DigestPeople *people)
{
    map_free(people->persons);
    map_free(people->entries);
    *people = (DigestPeople){.persons = map_new(NULL), .entries = map_new(NULL)};
}

size_t digest_people_count(const DigestPeople *people)
{
    return map_count(people->persons) + map_count(people->entries);
}

static Person *person_of(DigestPeople *people, const PersonEvent *event, Arena *arena)
{
    Str name = str_from(arena_printf(arena, "%s %s", event->meta->tenant, event->recipient_id));
    Person *person = map_get(people->persons, name);
    if (person == NULL) {
        person = arena_zalloc(arena, sizeof *person);
        person->tenant = arena_str(arena, str_from(event->meta->tenant));
        person->recipient = arena_str(arena, str_from(event->recipient_id));
        person->next = people->first_person;
        people->first_person = person;
        map_put(people->persons, name, person);
    }
    return person;
}

// The one of the person's preferences, or consents, that `said` is about: a zeroed or an older one.
static Entry *entry_of(DigestPeople *people, const Entry *said, Arena *arena)
{
    const Person *person = said->person;
    Str name = str_from(arena_printf(
        arena, "%s " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT, said->is_consent ? "c" : "p",
        STR_ARG(person->tenant), STR_ARG(person->recipient), STR_ARG(said->category),
        STR_ARG(said->channel)));
    Entry *entry = map_get(people->entries, name);
    if (entry == NULL) {
        entry = arena_zalloc(arena, sizeof *entry);
        entry->next = people->first_entry;
        people->first_entry = entry;
        map_put(people->entries, name, entry);
    }
    return entry;
}

static void fold_entry(DigestPeople *people, Entry said, Arena *arena)
{
    Entry *entry = entry_of(people, &said, arena);
    said.next = entry->next;
    *entry = said;
}

static Str category_word(Stentor__V1__Category category)
{
    return category == 0 ? STR("any") : str_from(category_name((Category)category));
}

static Str channel_word(Stentor__V1__Channel channel)
{
    return channel == 0 ? STR("any") : str_from(channel_name((Channel)channel));
}

static void fold_preference(
    DigestPeople *people, Person *person, const Stentor__V1__Preference *said, Arena *arena)
{
    Entry entry = {
        .person = person,
        .category = category_word(said->category),
        .channel = channel_word(said->channel),
        .is_off = said->off,
        .is_immediate = said->frequency <= STENTOR__V1__FREQUENCY__FREQUENCY_IMMEDIATE,
        .is_cleared = said->cleared,
    };
    fold_entry(people, entry, arena);
}

static void fold_consent(
    DigestPeople *people, Person *person, const Stentor__V1__Consent *said, Arena *arena)
{
    Entry entry = {
        .person = person,
        .category = category_word(said->category),
        .channel = channel_word(said->channel),
        .is_consent = true,
        .is_granted = said->granted,
    };
    fold_entry(people, entry, arena);
}

// Entries of before the removal must not come back with the flush.
static void fold_removal(const DigestPeople *people, Person *person)
{
    for (Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->person == person) {
            entry->is_cleared = true;
        }
    }
    person->removed_once = true;
    person->is_removed = person->knows_removed = true;
    person->is_unsubscribed = false;
    person->knows_unsubscribed = true;
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
    Person *person;
    switch (event->part_case) {
    case STENTOR__V1__PERSON_EVENT__PART_RECIPIENT:
        person = person_of(people, event, arena);
        person->is_removed = false;
        person->knows_removed = true;
        return true;
    case STENTOR__V1__PERSON_EVENT__PART_PREFERENCE:
        person = person_of(people, event, arena);
        fold_preference(people, person, event->preference, arena);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_REMOVAL:
        person = person_of(people, event, arena);
        fold_removal(people, person);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION:
        person = person_of(people, event, arena);
        person->is_unsubscribed = event->unsubscription->unsubscribed;
        person->knows_unsubscribed = true;
        break;
    case STENTOR__V1__PERSON_EVENT__PART_CONSENT:
        person = person_of(people, event, arena);
        fold_consent(people, person, event->consent, arena);
        break;
    default: // a part that a later version knows
        return true;
    }
    person->said_at_us = message->stored_at_us;
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
// NULL: nothing was said of it.
static const DbStatement put_silence = {
    .name = "people_silence",
    .sql =
    "INSERT INTO digest_flusher.silenced AS s (tenant_id, recipient_id, is_removed, is_unsubscribed)"
    " SELECT i.tenant_id, i.recipient_id, coalesce(i.is_removed, o.is_removed, false),"
    "  coalesce(i.is_unsubscribed, o.is_unsubscribed, false)"
    " FROM unnest($1::text[], $2::text[], $3::bool[], $4::bool[]) AS i(tenant_id, recipient_id, is_removed, is_unsubscribed)"
    " LEFT JOIN digest_flusher.silenced o ON o.tenant_id = i.tenant_id AND o.recipient_id = i.recipient_id"
    " WHERE o.tenant_id IS NOT NULL OR i.is_removed OR i.is_unsubscribed"
    " ON CONFLICT (tenant_id, recipient_id)"
    " DO UPDATE SET is_removed = excluded.is_removed, is_unsubscribed = excluded.is_unsubscribed",
};
static const DbStatement drop_silence = {
    .name = "people_speak",
    .sql =
    "DELETE FROM digest_flusher.silenced s USING unnest($1::text[], $2::text[]) AS i(tenant_id, recipient_id)"
    " WHERE s.tenant_id = i.tenant_id AND s.recipient_id = i.recipient_id AND NOT s.is_removed AND NOT s.is_unsubscribed",
};
// Only windows that were open when it was said: PEOPLE is read again from its beginning at times.
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

typedef struct PersonArrays {
    DbArray *tenant, *recipient;
} PersonArrays;

static DbParams *add_persons(DbTxn *txn, const DbStatement *statement, PersonArrays *ret)
{
    DbParams *params = db_txn_add(txn, statement, NULL);
    ret->tenant = db_array(params, DB_TEXT);
    ret->recipient = db_array(params, DB_TEXT);
    return params;
}

static void push_person(DbTxn *txn, const PersonArrays *arrays, const Person *person)
{
    db_txn_tenant(txn, person->tenant);
    db_push_text(arrays->tenant, person->tenant);
    db_push_text(arrays->recipient, person->recipient);
}

static void write_removals(const DigestPeople *people, DbTxn *txn, const DbStatement *statement)
{
    PersonArrays arrays;
    add_persons(txn, statement, &arrays);
    for (const Person *p = people->first_person; p != NULL; p = p->next) {
        if (p->removed_once) {
            push_person(txn, &arrays, p);
        }
    }
}

// A cleared consent is one of before a removal, which has deleted it.
static void write_consents(const DigestPeople *people, DbTxn *txn)
{
    PersonArrays arrays;
    DbParams *params = add_persons(txn, &put_consents, &arrays);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *is_granted = db_array(params, DB_BOOL);
    for (const Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->is_consent && !entry->is_cleared) {
            push_person(txn, &arrays, entry->person);
            db_push_text(category, entry->category);
            db_push_text(channel, entry->channel);
            db_push_int(is_granted, entry->is_granted);
        }
    }
}

static void write_entries(const DigestPeople *people, DbTxn *txn, bool cleared)
{
    PersonArrays arrays;
    DbParams *params = add_persons(txn, cleared ? &clear_entries : &put_entries, &arrays);
    DbArray *category = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    DbArray *is_off = cleared ? NULL : db_array(params, DB_BOOL);
    DbArray *is_immediate = cleared ? NULL : db_array(params, DB_BOOL);
    for (const Entry *entry = people->first_entry; entry != NULL; entry = entry->next) {
        if (entry->is_consent || entry->is_cleared != cleared) {
            continue;
        }
        push_person(txn, &arrays, entry->person);
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

static void write_silence(const DigestPeople *people, DbTxn *txn)
{
    PersonArrays arrays;
    DbParams *params = add_persons(txn, &put_silence, &arrays);
    DbArray *is_removed = db_array(params, DB_BOOL);
    DbArray *is_unsubscribed = db_array(params, DB_BOOL);
    for (const Person *p = people->first_person; p != NULL; p = p->next) {
        if (p->knows_removed || p->knows_unsubscribed) {
            push_person(txn, &arrays, p);
            push_known(is_removed, p->knows_removed, p->is_removed);
            push_known(is_unsubscribed, p->knows_unsubscribed, p->is_unsubscribed);
        }
    }
    add_persons(txn, &drop_silence, &arrays);
    for (const Person *p = people->first_person; p != NULL; p = p->next) {
        push_person(txn, &arrays, p);
    }
}

static void write_windows(const DigestPeople *people, DbTxn *txn)
{
    PersonArrays arrays;
    DbParams *params = add_persons(txn, &reconsider, &arrays);
    DbArray *said_at = db_array(params, DB_TIME);
    for (const Person *p = people->first_person; p != NULL; p = p->next) {
        if (p->said_at_us > 0) {
            push_person(txn, &arrays, p);
            db_push_time(said_at, p->said_at_us);
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
    write_silence(people, txn);
    write_windows(people, txn);
}
