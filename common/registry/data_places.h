// SPDX-License-Identifier: Apache-2.0
// Every place that holds data: streams, and tables of the services. For each, what it is, what it
// is made of, how it is made again, which personal data it holds and how an erasure reaches that,
// and where it goes in the archive. A test compares it with a migrated database and with the
// topology, so a new table or stream is decided, not forgotten. Pure.
#pragma once

#include "common/base/str.h"

typedef enum PlaceRole {
    PLACE_LOG,         // a stream that others are made of, stored as segments
    PLACE_TRANSPORT,   // a stream between two stages
    PLACE_PROJECTION,  // a table made of streams: it can be made again
    PLACE_WORK,        // what waits or is under way; gone when it is done
    PLACE_SOURCE,      // a table that nothing else holds: back-ups keep it
    PLACE_BOOKKEEPING, // positions, cursors, locks
} PlaceRole;

typedef enum PlacePerson {
    PERSON_NONE,   // ids at most
    PERSON_HASHED, // keyed hashes, ids of recipients: they stay, as proof and for suppression
    PERSON_SEALED, // sealed under the recipient's key; hashes too
    PERSON_CLEAR,  // readable by whoever may read the place
} PlacePerson;

typedef struct DataPlace {
    const char *name; // "people.addresses"; a stream: "PEOPLE"
    PlaceRole role;
    const char *made_of; // "PEOPLE", "REQUEST_*, STATUS"; "": nothing, it is where it begins
    PlacePerson person;
    const char *erased;   // how an erasure reaches it; "": it holds none
    const char *archived; // "segments", "units", "objects"; "": nowhere
} DataPlace;

// The rows are static.
const DataPlace *data_places(size_t *ret_count);
const DataPlace *data_place(Str name); // NULL: unknown
const char *place_role_name(PlaceRole role);
const char *place_person_name(PlacePerson person);
