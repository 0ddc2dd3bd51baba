// SPDX-License-Identifier: Apache-2.0
// /v1/suppressions: list, add, release, export. The list is read from CONFIG itself (a reader per
// call, at most READS_MAX at once): the index in memory knows hashes, not who and why. Answers come
// after JetStream's ack, so what was answered reaches every replica by its copy of CONFIG.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/codec/master_key.h"
#include "common/model/suppressions.h"
#include "stentor/v1/config.pb-c.h"

enum {
    SUPPRESSIONS_READS_MAX = 8,
    SUPPRESSIONS_EXPORT_MAX =
        50000,                    // lines of one answer; Stentor-Next is the cursor of those behind
    SUPPRESSIONS_READ_MS = 20000, // then 503
};

typedef struct SuppressionsApi {
    Bus *bus;
    HashKeys hash_keys;        // of addresses
    const Suppressions *known; // of all tenants: what a new entry would replace
    size_t reading;            // readers not yet freed; 0 before the process may end
    struct SuppressionsReading *under_way;
} SuppressionsApi;

// What a complaint or the law made is ended by who may release it only, also by an entry that says
// less in its place.
bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Stentor__V1__Suppression *entry);
void suppressions_api_add(Api *api, SuppressionsApi *suppressions);
void suppressions_api_tick(SuppressionsApi *suppressions); // every 50 ms: what reads too long
