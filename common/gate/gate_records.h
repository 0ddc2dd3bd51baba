// SPDX-License-Identifier: Apache-2.0
// What the gate must know of recipients, read from people.* for a whole group at once: four
// statements in one transaction, however many recipients.
#pragma once

#include "common/base/map.h"
#include "common/codec/hash.h"
#include "common/db/db.h"
#include "common/model/rules/gate.h"

// The address that is used on a channel: the primary one, else the first that is active.
typedef struct RecordAddress {
    bool there;
    uint8_t hash[ADDRESS_HASH_LEN];
    Str sealed; // packed stentor.v1.Sealed, field "address", for the recipient's id
} RecordAddress;

typedef struct Record {
    Str tenant;
    Str id;
    bool known;
    GatePerson facts;
    Str locale;
    Str time_zone; // IANA; empty: none, or one that is not known here
    Str guardian_id;
    RecordAddress addresses[CHANNEL_COUNT];
    GatePreference *preferences;
    GateConsent *consents;
} Record;

// The recipients of one look-up, each once. Everything lives in `arena`.
typedef struct Records {
    Arena *arena;
    Map *by_name; // "<tenant>/<id>" -> Record
    Record **items;
    size_t count;
    size_t cap;  // grows
    size_t read; // the first so many have been looked up
} Records;

void records_init(Records *records, Arena *arena, size_t cap); // room for so many at first
void records_done(Records *records);
Record *records_want(Records *records, Str tenant, Str id);
Record *records_find(const Records *records, Str tenant, Str id); // NULL: not wanted, or not known
// Adds the four statements that read those that were wanted since the last look-up.
void records_ask(const Records *records, DbTxn *txn);
// Their answers, after success, the first one at `at` in the transaction. Zones are taken from
// `zones`; one that is unknown counts as none.
void records_read(Records *records, const DbTxn *txn, int at, Zones *zones);
