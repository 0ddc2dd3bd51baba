// SPDX-License-Identifier: Apache-2.0
// The bodies of /v1/recipients...: JSON into a recipient's record, with every value checked. Pure.
// Errors name the field: "addresses[2].address".
#pragma once

#include "common/api/api_json.h"

enum {
    PERSON_ADDRESSES_MAX = 50,
    PERSON_LABELS_MAX = 32,
    PERSON_PREFERENCES_MAX = 100, // more than there are categories and channels
    PERSON_TEXT_MAX = 256,        // name, identity_id, label, source
    PERSON_LINE_MAX = 64 * 1024,  // bytes of one record
    PERSON_AT_DEFAULT = 8 * 60,   // a digest without a time of day comes at 08:00
};

typedef struct PersonAddress {
    Channel channel;
    Str address; // normalised (channel_address.h)
    AddressStatus status;
    bool verified;
    bool primary;
    Str label;
} PersonAddress;

typedef struct PersonRecord {
    Identity identity;
    Str identity_id;
    Str name;
    Str locale;
    Str time_zone;
    bool quiet; // has quiet hours of its own
    uint32_t quiet_start;
    uint32_t quiet_end;
    PersonAddress *addresses;
    size_t address_count;
    bool minor;
    Str guardian_id;
    GuardianRouting guardian_routing;
    Str *labels; // each once
    size_t label_count;
} PersonRecord;

typedef struct PersonPreference {
    Category category; // NONE: any
    Channel channel;
    bool off;
    Frequency frequency;
    uint32_t at_minute;
    uint32_t on_weekday; // 1 Monday .. 7 Sunday; 0: none said
} PersonPreference;

typedef struct PersonConsent {
    Category category;
    Channel channel;
    bool granted;
    Str source;
    int64_t given_at_us; // 0: now
} PersonConsent;

// Each takes its fields out of the body; call api_body_end after it. Results live in body->arena.
bool person_record_read(ApiBody *body, PersonRecord *ret);
// The arrays "preferences" and "consents"; *ret_given: it was there.
bool person_preferences_read(
    ApiBody *body, PersonPreference **ret, size_t *ret_count, bool *ret_given);
bool person_consents_read(
    ApiBody *body, int64_t now_us, PersonConsent **ret, size_t *ret_count, bool *ret_given);
// One line of an import: a record, perhaps with "id", "preferences" and "consents". What they do
// not name stays as it is. Without an id, an identity or an address it would be unknown who it is:
// an error.
typedef struct PersonLine {
    Str id; // empty: by identity, else by the first address
    PersonRecord record;
    PersonPreference *preferences;
    size_t preference_count;
    PersonConsent *consents;
    size_t consent_count;
} PersonLine;

bool person_line_read(Str text, int64_t now_us, Arena *arena, PersonLine *ret, Problem *problem);

// A body that is an array becomes {"<name>": [...]}; every other text is parsed as it is.
bool person_body_parse(ApiBody *body, const char *name, Str text, Arena *arena);
