// SPDX-License-Identifier: Apache-2.0
// What the handlers of /v1/recipients share: one call with its checks, its question to the tables
// and its facts. Every function that answers leads to exactly one answer.
#pragma once

#include "common/api/precondition.h"
#include "services/gateway/recipients/people_api.h"
#include "services/gateway/recipients/people_read.h"

// One call on its way; lives in the request's arena.
typedef struct PeopleCall {
    PeopleApi *api;
    ApiCall *base;
    Str id;
    Precondition needs;
    uint64_t version; // of the person: its ETag; 0: none, or not looked up
    int tries;
    PeopleRead *read; // of a call that reads people
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
    PeopleWrite write;
    void (*look_up_done)(
        struct PeopleCall *call, const PGresult *rows); // set by people_call_look_up
} PeopleCall;

PeopleCall *people_call_new(ApiCall *base); // in the request's arena
void people_call_answer(PeopleCall *call, int status, const Buf *json);
bool people_call_check_id(PeopleCall *call); // takes the first segment; false: answered
// Parses the body (an array becomes {"<array>": [...]}) and has it taken. false: answered with what
// is wrong.
bool people_call_read_body(
    PeopleCall *call, const char *array, bool (*take)(PeopleCall *call, ApiBody *body), Str text);

// A transaction for one statement of the caller's, to be submitted with people_call_looked_up. An
// error is answered; else `done` gets the rows.
DbTxn *people_call_look_up(PeopleCall *call, void (*done)(PeopleCall *call, const PGresult *rows));
void people_call_looked_up(void *ctx, DbTxn *txn, const Error *err);
// The person's version is known by `done`; a precondition that does not hold is answered.
void people_call_look_up_known(
    PeopleCall *call, void (*done)(PeopleCall *call, const PGresult *rows));
bool people_call_is_known(PeopleCall *call, const PGresult *rows); // false: answered with 404

// Something can be written now, and the precondition can be read. false: answered.
bool people_call_may_write(PeopleCall *call);
// `room`: how many there may be in all; the same in each call.
PersonFact *people_call_add_fact(PeopleCall *call, PersonPart part, size_t room);
// Writes the facts, if any, and answers; under a precondition only while the person is as it was
// looked up.
void people_call_write(PeopleCall *call);

extern const ApiRoute people_wishes_routes[]; // preferences, consents, unsubscription
extern const size_t people_wishes_route_count;
