// SPDX-License-Identifier: Apache-2.0
// What the handlers of /v1/recipients share: one call with its checks, its question to the tables
// and its facts. Every function that answers leads to exactly one answer.
#pragma once

#include "common/api/precondition.h"
#include "services/gateway/recipients/recipients_api.h"
#include "services/gateway/recipients/recipients_read.h"
#include "services/gateway/recipients/shared_addresses.h"

// One call on its way; lives in the request's arena.
typedef struct RecipientCall {
    RecipientsApi *api;
    ApiCall *base;
    Str id;
    Precondition needs;
    uint64_t version; // of the recipient: its ETag; 0: none, or not looked up
    int tries;
    RecipientsRead *read; // of a call that reads recipients
    bool created;
    bool removed;
    bool given; // the body named what it is about
    PersonRecord record;
    PersonPreference *preferences;
    size_t preference_count;
    PersonConsent *consents;
    size_t consent_count;
    PersonFact *facts;
    size_t fact_count;
    RecipientsWrite write;
    SharedOwner owner;   // of a record that is stored
    bool alone;          // it is stored only while no other has one of its addresses
    const char *warning; // for the answer; NULL: none
    void (*look_up_done)(
        struct RecipientCall *call, const PGresult *rows); // set by recipient_call_look_up
} RecipientCall;

RecipientCall *recipient_call_new(ApiCall *base); // in the request's arena
void recipient_call_answer(RecipientCall *call, int status, const Buf *json);
bool recipient_call_check_id(RecipientCall *call); // takes the first segment; false: answered
// Parses the body (an array becomes {"<array>": [...]}) and has it taken. false: answered with what
// is wrong.
bool recipient_call_read_body(
    RecipientCall *call, const char *array, bool (*take)(RecipientCall *call, ApiBody *body),
    Str text);

// A transaction for one statement of the caller's, to be submitted with recipient_call_looked_up.
// An error is answered; else `done` gets the rows.
DbTxn *recipient_call_look_up(
    RecipientCall *call, void (*done)(RecipientCall *call, const PGresult *rows));
void recipient_call_looked_up(void *ctx, DbTxn *txn, const Error *err);
// The recipient's version is known by `done`; a precondition that does not hold is answered.
void recipient_call_look_up_known(
    RecipientCall *call, void (*done)(RecipientCall *call, const PGresult *rows));
bool recipient_call_is_known(RecipientCall *call, const PGresult *rows); // false: answered with 404

// Something can be written now, and the precondition can be read. false: answered.
bool recipient_call_may_write(RecipientCall *call);
// `room`: how many there may be in all; the same in each call.
PersonFact *recipient_call_add_fact(RecipientCall *call, PersonPart part, size_t room);
// Writes the facts, if any, and answers; under a precondition only while the recipient is as it was
// looked up.
void recipient_call_write(RecipientCall *call);

// The same for the record, which is its one fact: what the tenant says of addresses that another
// recipient has too is asked for before (shared_addresses.h).
void recipient_call_write_record(RecipientCall *call);

extern const ApiRoute preferences_routes[]; // preferences, consents, unsubscription
extern const size_t preferences_route_count;
