// SPDX-License-Identifier: Apache-2.0
// Events of PEOPLE as messages of the stream, for the tests of the projection.
#pragma once

#include <string.h>

#include "common/codec/event.h"
#include "common/recipients/people_fold.h"

#define PERSON_A "rcp_01KAGTQ5M0000000000000000A"
#define PERSON_B "rcp_01KAGTQ5M0000000000000000B"

static const int64_t PEOPLE_T0_US = INT64_C(1795199136000000);

typedef Stentor__V1__PersonEvent PersonEvent;

static inline char *event_text(Arena *arena, const char *text)
{
    return arena_cstr(arena, str_from(text));
}

static inline PersonEvent *person_event(Arena *arena, const char *tenant, const char *id)
{
    PersonEvent *event = arena_zalloc(arena, sizeof *event);
    stentor__v1__person_event__init(event);
    event->meta = arena_zalloc(arena, sizeof *event->meta);
    stentor__v1__meta__init(event->meta);
    event->meta->tenant = event_text(arena, tenant);
    event->meta->occurred_at_us = PEOPLE_T0_US;
    event->recipient_id = event_text(arena, id);
    return event;
}

// An address whose hash is 32 times `mark`, sealed as it were.
static inline Stentor__V1__RecipientAddress *person_address(Arena *arena, char mark)
{
    Stentor__V1__RecipientAddress *address = arena_zalloc(arena, sizeof *address);
    stentor__v1__recipient_address__init(address);
    char *hash = arena_alloc(arena, 32);
    memset(hash, mark, 32);
    address->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    address->address_hash = pb_data(str_of(hash, 32));
    address->address = arena_zalloc(arena, sizeof *address->address);
    stentor__v1__sealed__init(address->address);
    address->address->ciphertext = pb_data(STR("sealed"));
    return address;
}

// A record with one address for each character of `marks`.
static inline PersonEvent *record_event(
    Arena *arena, const char *tenant, const char *id, const char *identity_id, const char *marks)
{
    PersonEvent *event = person_event(arena, tenant, id);
    Stentor__V1__Recipient *record = arena_zalloc(arena, sizeof *record);
    stentor__v1__recipient__init(record);
    record->identity = STENTOR__V1__IDENTITY__IDENTITY_USER;
    record->identity_id = event_text(arena, identity_id);
    record->n_addresses = strlen(marks);
    record->addresses = arena_array(arena, record->n_addresses + 1, sizeof(void *));
    for (size_t i = 0; i < record->n_addresses; i++) {
        record->addresses[i] = person_address(arena, marks[i]);
    }
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_RECIPIENT;
    event->recipient = record;
    return event;
}

// Gives a record one label more.
static inline PersonEvent *with_label(Arena *arena, PersonEvent *event, const char *label)
{
    Stentor__V1__Recipient *record = event->recipient;
    char **labels = arena_array(arena, record->n_labels + 1, sizeof *labels);
    for (size_t i = 0; i < record->n_labels; i++) {
        labels[i] = record->labels[i];
    }
    labels[record->n_labels++] = event_text(arena, label);
    record->labels = labels;
    return event;
}

static inline PersonEvent *preference_event(
    Arena *arena, const char *tenant, const char *id, Stentor__V1__Category category,
    Stentor__V1__Frequency frequency)
{
    PersonEvent *event = person_event(arena, tenant, id);
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_PREFERENCE;
    event->preference = arena_zalloc(arena, sizeof *event->preference);
    stentor__v1__preference__init(event->preference);
    event->preference->category = category;
    event->preference->frequency = frequency;
    return event;
}

static inline PersonEvent *consent_event(
    Arena *arena, const char *tenant, const char *id, bool granted)
{
    PersonEvent *event = person_event(arena, tenant, id);
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_CONSENT;
    event->consent = arena_zalloc(arena, sizeof *event->consent);
    stentor__v1__consent__init(event->consent);
    event->consent->category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    event->consent->granted = granted;
    return event;
}

static inline PersonEvent *unsubscription_event(
    Arena *arena, const char *tenant, const char *id, bool unsubscribed)
{
    PersonEvent *event = person_event(arena, tenant, id);
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION;
    event->unsubscription = arena_zalloc(arena, sizeof *event->unsubscription);
    stentor__v1__unsubscription__init(event->unsubscription);
    event->unsubscription->unsubscribed = unsubscribed;
    return event;
}

static inline PersonEvent *removal_event(Arena *arena, const char *tenant, const char *id)
{
    PersonEvent *event = person_event(arena, tenant, id);
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_REMOVAL;
    event->removal = arena_zalloc(arena, sizeof *event->removal);
    stentor__v1__removal__init(event->removal);
    return event;
}

static inline BusMessage people_message(Arena *arena, const PersonEvent *event, uint64_t sequence)
{
    Str payload = STR_EMPTY;
    (void)event_pack(&event->base, arena, &payload, NULL);
    return (BusMessage){
        .subject = str_from(arena_printf(arena, "ppl.%s", event->meta->tenant)),
        .payload = payload,
        .stream = "PEOPLE",
        .sequence = sequence,
        .stored_at_us = PEOPLE_T0_US + (int64_t)sequence,
    };
}
