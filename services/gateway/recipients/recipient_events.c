// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipient_events.h"

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/recipients/people_fold.h"
#include "stentor/v1/people.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef struct Building {
    const PersonFact *fact;
    const PersonSaying *saying;
    Arena *arena;
} Building;

static Stentor__V1__Sealed *seal_text(Building *b, const char *field, Str plain)
{
    return seal(b->saying->key, b->saying->tenant, b->fact->recipient_id, field, plain, b->arena);
}

static Stentor__V1__RecipientAddress *build_address(
    Building *b, const PersonAddress *address, Str name, Error *err)
{
    Stentor__V1__Address plain;
    stentor__v1__address__init(&plain);
    plain.address = pb_text(b->arena, address->address);
    plain.name = pb_text(b->arena, name);
    Str packed = STR_EMPTY;
    if (!event_pack(&plain.base, b->arena, &packed, err)) {
        return NULL;
    }
    Stentor__V1__RecipientAddress *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__recipient_address__init(out);
    uint8_t *hash = arena_alloc(b->arena, ADDRESS_HASH_LEN);
    address_hash(b->saying->hash_key, b->saying->tenant, address->channel, address->address, hash);
    out->channel = (Stentor__V1__Channel)address->channel;
    out->address_hash = pb_data(str_of(hash, ADDRESS_HASH_LEN));
    out->address = seal_text(b, "address", packed);
    out->status = (Stentor__V1__AddressStatus)address->status;
    out->verified = address->verified;
    out->primary = address->primary;
    out->label = pb_text(b->arena, address->label);
    return out;
}

static bool add_addresses(
    Building *b, const PersonRecord *record, Stentor__V1__Recipient *out, Error *err)
{
    out->addresses = arena_array(b->arena, record->address_count + 1, sizeof(void *));
    for (size_t i = 0; i < record->address_count; i++) {
        out->addresses[i] = build_address(b, &record->addresses[i], record->name, err);
        if (out->addresses[i] == NULL) {
            return false;
        }
    }
    out->n_addresses = record->address_count;
    return true;
}

static void add_labels(Building *b, const PersonRecord *record, Stentor__V1__Recipient *out)
{
    out->labels = arena_array(b->arena, record->label_count + 1, sizeof *out->labels);
    for (size_t i = 0; i < record->label_count; i++) {
        out->labels[i] = pb_text(b->arena, record->labels[i]);
    }
    out->n_labels = record->label_count;
}

static bool build_record(Building *b, Stentor__V1__PersonEvent *event, Error *err)
{
    const PersonRecord *record = b->fact->record;
    Stentor__V1__Recipient *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__recipient__init(out);
    out->identity = (Stentor__V1__Identity)record->identity;
    out->identity_id = pb_text(b->arena, record->identity_id);
    out->name = record->name.len > 0 ? seal_text(b, "name", record->name) : NULL;
    out->locale = pb_text(b->arena, record->locale);
    out->time_zone = pb_text(b->arena, record->time_zone);
    if (record->quiet) {
        out->quiet_hours = arena_zalloc(b->arena, sizeof *out->quiet_hours);
        stentor__v1__quiet_hours__init(out->quiet_hours);
        out->quiet_hours->start_minute = record->quiet_start;
        out->quiet_hours->end_minute = record->quiet_end;
    }
    out->minor = record->minor;
    out->guardian_id = pb_text(b->arena, record->guardian_id);
    out->guardian_routing = (Stentor__V1__GuardianRouting)record->guardian_routing;
    add_labels(b, record, out);
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_RECIPIENT;
    event->recipient = out;
    return add_addresses(b, record, out, err);
}

static void build_preference(Building *b, Stentor__V1__PersonEvent *event)
{
    const PersonPreference *said = &b->fact->preference;
    Stentor__V1__Preference *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__preference__init(out);
    out->category = (Stentor__V1__Category)said->category;
    out->channel = (Stentor__V1__Channel)said->channel;
    out->cleared = b->fact->part == PERSON_PREFERENCE_CLEARED;
    if (!out->cleared) {
        out->off = said->off;
        out->frequency = (Stentor__V1__Frequency)said->frequency;
        out->at_minute = said->at_minute;
        out->on_weekday = said->on_weekday;
    }
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_PREFERENCE;
    event->preference = out;
}

static void build_consent(Building *b, Stentor__V1__PersonEvent *event)
{
    const PersonConsent *said = &b->fact->consent;
    Stentor__V1__Consent *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__consent__init(out);
    out->category = (Stentor__V1__Category)said->category;
    out->channel = (Stentor__V1__Channel)said->channel;
    out->granted = said->granted;
    out->source = pb_text(b->arena, said->source);
    out->given_at_us = said->given_at_us != 0 ? said->given_at_us : b->saying->now_us;
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_CONSENT;
    event->consent = out;
}

static void build_unsubscription(Building *b, Stentor__V1__PersonEvent *event)
{
    Stentor__V1__Unsubscription *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__unsubscription__init(out);
    out->unsubscribed = b->fact->unsubscribed;
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_UNSUBSCRIPTION;
    event->unsubscription = out;
}

static void build_removal(Building *b, Stentor__V1__PersonEvent *event)
{
    static char reason[] = "deleted by the API";
    Stentor__V1__Removal *out = arena_zalloc(b->arena, sizeof *out);
    stentor__v1__removal__init(out);
    out->reason = reason;
    event->part_case = STENTOR__V1__PERSON_EVENT__PART_REMOVAL;
    event->removal = out;
}

static bool build_part(Building *b, Stentor__V1__PersonEvent *event, Error *err)
{
    switch (b->fact->part) {
    case PERSON_RECORD:
        return build_record(b, event, err);
    case PERSON_PREFERENCE:
    case PERSON_PREFERENCE_CLEARED:
        build_preference(b, event);
        break;
    case PERSON_CONSENT:
        build_consent(b, event);
        break;
    case PERSON_UNSUBSCRIPTION:
        build_unsubscription(b, event);
        break;
    case PERSON_REMOVAL:
        build_removal(b, event);
        break;
    }
    return true;
}

bool person_event_pack(
    const PersonFact *fact, const PersonSaying *saying, Arena *arena, Str *ret_event_id,
    Str *ret_payload, Error *err)
{
    Building building = {.fact = fact, .saying = saying, .arena = arena};
    // Each write is a new fact with an id of its own, also with the same content. The bus repeats a
    // publish under the same id.
    uint8_t random[16];
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, id);
    MetaSpec head = {
        .event_id = id,
        .tenant = pb_text(arena, saying->tenant),
        .at_us = saying->now_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__PersonEvent event;
    stentor__v1__person_event__init(&event);
    event.meta = &meta;
    event.recipient_id = pb_text(arena, fact->recipient_id);
    event.said_by = pb_text(arena, saying->said_by);
    Str payload = STR_EMPTY;
    if (!build_part(&building, &event, err) || !event_pack(&event.base, arena, &payload, err)) {
        return false;
    }
    if (payload.len > PEOPLE_EVENT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the record has %zu bytes as an event; at most %d", payload.len,
            (int)PEOPLE_EVENT_MAX);
    }
    *ret_event_id = str_from(meta.event_id);
    *ret_payload = payload;
    return true;
}

void person_derive_id(Str hash_key, Str tenant, const char *kind, Str cause, char out[ID_SIZE])
{
    uint8_t hash[SHA256_LEN];
    Arena *arena = arena_new(0);
    const char *text = arena_printf(
        arena, "recipient|" STR_FMT "|%s|" STR_FMT, STR_ARG(tenant), kind, STR_ARG(cause));
    hmac_sha256(hash_key, str_from(text), hash);
    arena_free(arena);
    id_derived("rcp_", 0, hash, out); // its time part is zero
}
