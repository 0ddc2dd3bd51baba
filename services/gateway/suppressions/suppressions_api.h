// SPDX-License-Identifier: Apache-2.0
// /v1/suppressions: list, add, release, import, export. The index in memory knows hashes, not who
// and why, so the list is read from CONFIG. Answers come after JetStream's ack, so what was
// answered reaches every replica by its copy of CONFIG.
#pragma once

#include "common/api/api.h"
#include "common/auditlog/audit_append.h"
#include "common/bus/jetstream/bus.h"
#include "common/codec/master_key.h"
#include "common/model/suppressions.h"
#include "stentor/v1/config.pb-c.h"

typedef struct SuppressionsApi {
    Bus *bus;
    AuditLog *audit;           // who releases what
    HashKeys hash_keys;        // of addresses
    const Suppressions *known; // of all tenants: what a new entry would replace
    size_t reading;            // readers not yet freed; 0 before the process may end
    struct SuppressionsReading *under_way;
} SuppressionsApi;

void suppressions_api_add(Api *api, SuppressionsApi *suppressions);
// "alice@example.com" or, on other channels, the address as it is, into its hash.
bool suppressions_hash_address(
    const SuppressionsApi *api, ApiCall *call, Channel channel, Str text,
    uint8_t ret[SUPPRESSION_HASH_LEN], Str *ret_address, FieldError *err);
