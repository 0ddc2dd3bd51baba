// SPDX-License-Identifier: Apache-2.0
// A change of one entry of CONFIG for a call: what stands there is read, the call's precondition is
// compared with it, the new entry is made from it, and stored in the place of just what was read.
// Of two calls at the same moment the second one is refused (409 `entry-changed`, or 412 with a
// precondition).
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/api/api.h"
#include "common/api/api_json.h"
#include "common/api/precondition.h"
#include "services/gateway/vendors/vendors_api.h"

typedef struct EntryChange EntryChange;

struct EntryChange {
    ApiCall *call;
    const char *kind;
    Str key;
    // Makes the entry from the payload that stands there (empty: none). *ret NULL: it is to be
    // removed. false: answered.
    bool (*make)(EntryChange *change, Str there, const ProtobufCMessage **ret);
    // It is stored, or was the same already (payload: what stands there).
    void (*answer)(EntryChange *change, Str payload);
    Precondition needs;
    uint64_t sequence; // of what is stored, in `answer`
};

// In the request's arena, with call, kind and key.
EntryChange *entry_change_new(ApiCall *call, size_t size, const char *kind, Str key);
// Leads to exactly one answer.
void entry_change_run(EntryChange *change);
// A check's error, whose text begins with the field: "domain: not in lower case ...".
void entry_fail(ApiBody *body, const Error *err);
