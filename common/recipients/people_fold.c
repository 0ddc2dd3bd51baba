// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_fold.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/model/enums.h"

enum { MINUTES = 24 * 60 };

static const int64_t time_max_us = INT64_C(253402300799000000); // the end of 9999

struct PeopleFold {
    Map *by_id; // "<tenant>/<recipient>"
    PersonFold **rows;
    size_t count;
    size_t cap;
    uint64_t first;
};

PeopleFold *people_fold_new(void)
{
    PeopleFold *fold = xcalloc(1, sizeof *fold);
    fold->by_id = map_new(NULL);
    return fold;
}

void people_fold_free(PeopleFold *fold)
{
    if (fold == NULL) {
        return;
    }
    map_free(fold->by_id);
    free(fold->rows);
    free(fold);
}

void people_fold_clear(PeopleFold *fold)
{
    map_free(fold->by_id);
    fold->by_id = map_new(NULL);
    fold->count = 0;
    fold->first = 0;
}

// ---- checks: a row that Postgres refuses would stop the projection for ever ----

static bool is_time(int64_t at_us)
{
    return at_us >= 0 && at_us <= time_max_us;
}

static bool check_kind(int category, int channel, Error *err)
{
    bool known = (category == CATEGORY_NONE || category_name((Category)category)[0] != '\0') &&
                 (channel == CHANNEL_NONE || channel_name((Channel)channel)[0] != '\0');
    return known ||
           error_set(err, ERROR_PERMANENT, "unknown category %d or channel %d", category, channel);
}

static bool check_address(const Stentor__V1__RecipientAddress *address, Error *err)
{
    if (channel_name((Channel)address->channel)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "unknown channel %d", (int)address->channel);
    }
    if (address->status != 0 && address_status_name((AddressStatus)address->status)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "unknown status %d", (int)address->status);
    }
    if (address->address_hash.len != ADDRESS_HASH_LEN || address->address == NULL) {
        return error_set(err, ERROR_PERMANENT, "an address without its hash or its sealed text");
    }
    return true;
}

static bool check_labels(const Stentor__V1__Recipient *record, Error *err)
{
    if (record->n_labels > PEOPLE_LABELS_MAX) {
        return error_set(err, ERROR_PERMANENT, "%zu labels", record->n_labels);
    }
    for (size_t i = 0; i < record->n_labels; i++) {
        if (!id_is_key(str_from(record->labels[i]))) {
            return error_set(err, ERROR_PERMANENT, "'%.64s' is not a label", record->labels[i]);
        }
    }
    return true;
}

static bool check_record(const Stentor__V1__Recipient *record, Error *err)
{
    const Stentor__V1__QuietHours *quiet = record->quiet_hours;
    if (record->identity != 0 && identity_name((Identity)record->identity)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "unknown identity %d", (int)record->identity);
    }
    if (record->guardian_routing != 0 &&
        guardian_routing_name((GuardianRouting)record->guardian_routing)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "unknown guardian routing %d", (int)record->guardian_routing);
    }
    if (quiet != NULL && (quiet->start_minute >= MINUTES || quiet->end_minute >= MINUTES)) {
        return error_set(err, ERROR_PERMANENT, "quiet hours are minutes of a day, below 1440");
    }
    if (record->n_addresses > PEOPLE_ADDRESSES_MAX) {
        return error_set(err, ERROR_PERMANENT, "%zu addresses", record->n_addresses);
    }
    for (size_t i = 0; i < record->n_addresses; i++) {
        if (!check_address(record->addresses[i], err)) {
            return false;
        }
    }
    return check_labels(record, err);
}

static bool check_preference(const Stentor__V1__Preference *said, Error *err)
{
    if (said->frequency != 0 && frequency_name((Frequency)said->frequency)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "unknown frequency %d", (int)said->frequency);
    }
    if (said->at_minute >= MINUTES || said->on_weekday > 7) {
        return error_set(err, ERROR_PERMANENT, "a minute must be below 1440, a weekday at most 7");
    }
    return check_kind((int)said->category, (int)said->channel, err);
}

static bool check_head(const Stentor__V1__PersonEvent *event, Str subject, Error *err)
{
    Str tenant = str_slice(subject, sizeof "ppl." - 1, subject.len);
    if (event->meta == NULL || !id_is_tenant(tenant) ||
        !str_eq(tenant, str_from(event->meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "the event's tenant differs from its subject's");
    }
    if (!id_parse(str_from(event->recipient_id), "rcp_", NULL)) {
        return error_set(
            err, ERROR_PERMANENT, "'%.40s' is not a recipient's id", event->recipient_id);
    }
    return is_time(event->meta->occurred_at_us) ||
           error_set(err, ERROR_PERMANENT, "its time is outside of 1970 to 9999");
}

static bool check_part(const Stentor__V1__PersonEvent *event, Error *err)
{
    switch (event->part_case) {
    case STENTOR__V1__PERSON_EVENT__PART_RECIPIENT:
        return check_record(event->recipient, err);
    case STENTOR__V1__PERSON_EVENT__PART_PREFERENCE:
        return check_preference(event->preference, err);
    case STENTOR__V1__PERSON_EVENT__PART_CONSENT:
        if (!is_time(event->consent->given_at_us)) {
            return error_set(err, ERROR_PERMANENT, "a consent's time is outside of 1970 to 9999");
        }
        return check_kind((int)event->consent->category, (int)event->consent->channel, err);
    case STENTOR__V1__PERSON_EVENT__PART_REMOVAL:
    case STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION:
        return true;
    case STENTOR__V1__PERSON_EVENT__PART__NOT_SET:
    case _STENTOR__V1__PERSON_EVENT__PART__CASE_IS_INT_SIZE:
        break;
    }
    return error_set(err, ERROR_PERMANENT, "it has no content that this version knows");
}

// ---- folding ----

static PersonFold *find_person(PeopleFold *fold, Str tenant, Str id, Arena *arena)
{
    Str name = str_from(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(id)));
    PersonFold *person = map_get(fold->by_id, name);
    if (person != NULL) {
        return person;
    }
    person = arena_zalloc(arena, sizeof *person);
    person->tenant = tenant;
    person->id = id;
    map_put(fold->by_id, name, person);
    if (fold->count == fold->cap) {
        fold->cap = fold->cap == 0 ? 64 : 2 * fold->cap;
        fold->rows = xrealloc(fold->rows, fold->cap * sizeof *fold->rows);
    }
    fold->rows[fold->count++] = person;
    return person;
}

static void fold_preference(
    PersonFold *person, const Stentor__V1__Preference *said, const BusMessage *message,
    Arena *arena)
{
    PreferenceFold *entry = person->preferences;
    while (entry != NULL &&
           (entry->said->category != said->category || entry->said->channel != said->channel)) {
        entry = entry->next;
    }
    if (entry == NULL) {
        entry = arena_zalloc(arena, sizeof *entry);
        entry->next = person->preferences;
        person->preferences = entry;
    }
    entry->said = said;
    entry->sequence = message->sequence;
    entry->stored_at_us = message->stored_at_us;
}

static void fold_consent(
    PersonFold *person, const Stentor__V1__Consent *said, const BusMessage *message, Arena *arena)
{
    ConsentFold *entry = person->consents;
    while (entry != NULL &&
           (entry->said->category != said->category || entry->said->channel != said->channel)) {
        entry = entry->next;
    }
    if (entry == NULL) {
        entry = arena_zalloc(arena, sizeof *entry);
        entry->next = person->consents;
        person->consents = entry;
    }
    entry->said = said;
    entry->sequence = message->sequence;
    entry->given_at_us = said->given_at_us != 0 ? said->given_at_us : message->stored_at_us;
}

static void fold_part(
    PersonFold *person, const Stentor__V1__PersonEvent *event, const BusMessage *message,
    Arena *arena)
{
    switch (event->part_case) {
    case STENTOR__V1__PERSON_EVENT__PART_RECIPIENT:
        person->record = event->recipient;
        person->record_sequence = message->sequence;
        person->record_at_us = message->stored_at_us;
        break;
    case STENTOR__V1__PERSON_EVENT__PART_PREFERENCE:
        fold_preference(person, event->preference, message, arena);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_CONSENT:
        fold_consent(person, event->consent, message, arena);
        break;
    case STENTOR__V1__PERSON_EVENT__PART_REMOVAL:
        *person = (PersonFold){
            .tenant = person->tenant, .id = person->id, .removed_sequence = message->sequence};
        break;
    case STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION:
        person->unsubscribed_sequence = message->sequence;
        person->unsubscribed_at_us = !event->unsubscription->unsubscribed ? 0
                                     : event->meta->occurred_at_us != 0
                                         ? event->meta->occurred_at_us
                                         : message->stored_at_us;
        break;
    case STENTOR__V1__PERSON_EVENT__PART__NOT_SET:
    case _STENTOR__V1__PERSON_EVENT__PART__CASE_IS_INT_SIZE:
        break; // check_part has refused it
    }
}

bool people_fold_event(PeopleFold *fold, const BusMessage *message, Arena *arena, Error *err)
{
    fold->first =
        fold->first == 0 || message->sequence < fold->first ? message->sequence : fold->first;
    if (message->payload.len > PEOPLE_EVENT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "%zu bytes; at most %d", message->payload.len,
            (int)PEOPLE_EVENT_MAX);
    }
    const Stentor__V1__PersonEvent *event = (const Stentor__V1__PersonEvent *)event_unpack(
        &stentor__v1__person_event__descriptor, message->payload, arena, err);
    if (event == NULL || !check_head(event, message->subject, err) || !check_part(event, err)) {
        return false;
    }
    PersonFold *person =
        find_person(fold, str_from(event->meta->tenant), str_from(event->recipient_id), arena);
    fold_part(person, event, message, arena);
    return true;
}

PersonFold *const *people_fold_rows(const PeopleFold *fold, size_t *ret_count)
{
    *ret_count = fold->count;
    return fold->rows;
}

uint64_t people_fold_first(const PeopleFold *fold)
{
    return fold->first;
}
