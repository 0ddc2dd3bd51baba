// SPDX-License-Identifier: Apache-2.0
// /v1/recipients...: people, their preferences and consents. A write is answered once its events
// are stored in PEOPLE and, as a rule, once the projection has them, in whichever process it runs.
#pragma once

#include "common/api/api.h"
#include "services/gateway/recipients/people_write.h"

typedef struct PeopleApi {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    PeopleWait *wait;
} PeopleApi;

void people_api_add(Api *api, PeopleApi *people); // borrowed

// What people_import.c shares with it.
void people_api_import(ApiCall *call);            // POST /v1/recipients/import
bool people_api_writable(ApiCall *call);          // false: answered with 503
PeopleWrite people_api_write_of(ApiCall *call);   // without facts and done
Str people_api_hash_key(const PeopleApi *people); // ids are derived with it: the oldest in use
