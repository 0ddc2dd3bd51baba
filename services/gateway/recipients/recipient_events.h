// SPDX-License-Identifier: Apache-2.0
// One fact about a recipient as an event of PEOPLE, its name and addresses sealed. Pure but for the
// event's random id.
#pragma once

#include "common/base/id.h"
#include "common/codec/seal.h"
#include "services/gateway/recipients/recipient_json.h"

typedef enum PersonPart {
    PERSON_RECORD,
    PERSON_PREFERENCE,
    PERSON_PREFERENCE_CLEARED,
    PERSON_CONSENT,
    PERSON_UNSUBSCRIPTION,
    PERSON_REMOVAL,
} PersonPart;

typedef struct PersonFact {
    Str recipient_id;
    PersonPart part;
    const PersonRecord *record;
    PersonPreference preference; // also the cleared one's category and channel
    PersonConsent consent;
    bool unsubscribed;
    Error error; // of its writing; ERROR_NONE: stored
} PersonFact;

typedef struct PersonSaying {
    Str tenant;
    Str said_by;
    int64_t now_us;
    Str hash_key;
    DataKey *key; // of the recipient; NULL unless the part is the record
} PersonSaying;

// ERROR_PERMANENT: longer than an event of PEOPLE may be.
bool person_event_pack(
    const PersonFact *fact, const PersonSaying *saying, Arena *arena, Str *ret_event_id,
    Str *ret_payload, Error *err);

// The id of a recipient that is known by something of its own and was given none: the same for the
// same cause, so that a repeated import makes no recipient twice. `kind` "identity", "address".
void person_derive_id(Str hash_key, Str tenant, const char *kind, Str cause, char out[ID_SIZE]);
