// SPDX-License-Identifier: Apache-2.0
// /v1/recipients...: records, preferences and consents. A write is answered once its events
// are stored in PEOPLE and, as a rule, once the projection has them, in whichever process it runs.
#pragma once

#include "common/api/api.h"
#include "common/request/catalog.h"
#include "services/gateway/recipients/recipients_write.h"

typedef struct RecipientsApi {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    PeopleWait *wait;
    const Catalog *catalog; // the tenants' settings
} RecipientsApi;

void recipients_api_add(Api *api, RecipientsApi *people); // borrowed

// Shared with recipients_import.c.
void recipients_api_import(ApiCall *call);              // POST /v1/recipients/import
bool recipients_api_writable(ApiCall *call);            // false: answered with 503
RecipientsWrite recipients_api_write_of(ApiCall *call); // without facts and done
Str recipients_api_hash_key(
    const RecipientsApi *people); // ids are derived with it: the oldest in use
