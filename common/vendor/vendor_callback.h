// SPDX-License-Identifier: Apache-2.0
// What a vendor calls back: `verify` decides from the raw bytes alone whether the vendor sent it,
// before anything is parsed; `events` reads it. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/enums.h"
#include "common/vendor/vendor_api.h"

enum { CALLBACK_EVENTS_MAX = 10000, CALLBACK_TEXT_MAX = 512 };

// One key that callbacks may be signed with. Several are valid while one is being replaced.
typedef struct CallbackKey {
    Str name; // for metrics and logs: which one fits
    Str secret;
} CallbackKey;

typedef struct CallbackRequest {
    Str url; // as the vendor was given it: some sign it
    const VendorPair *headers;
    size_t header_count;
    Str body;
    int64_t received_at_us;
    int64_t max_age_s; // of a signed time, either way; 0: any
} CallbackRequest;

typedef enum CallbackVerdict {
    CALLBACK_GOOD,
    CALLBACK_UNSIGNED, // a header or a field that it needs is missing
    CALLBACK_STALE,    // its signed time is too far from now
    CALLBACK_BAD,      // no key fits
} CallbackVerdict;

typedef struct CallbackEvent {
    Str id;              // the vendor's own; empty: none
    Str notification_id; // "ntf_..."; empty: it names none of ours
    int32_t attempt;     // 0: it does not say
    Str message_id;      // the vendor's
    Status status;       // STATUS_NONE: it changes no status
    Outcome outcome;
    SuppressionReason suppress; // SUPPRESSION_NONE: none follows
    Str email;                  // empty: not given, or not an address
    const char *reason_code;    // static; "" unless the status is an end
    Str enhanced_code;          // "5.1.1"
    Str text;                   // the vendor's, addresses masked, at most CALLBACK_TEXT_MAX bytes
    int64_t at_us;              // 0: not given
    bool machine;               // opened or clicked by a scanner or a proxy: it raises no status
    // Of what is suppressed where email is empty, of ADDRESS_HASH_LEN bytes; NULL: not known.
    const uint8_t *address_hash;
} CallbackEvent;

typedef struct CallbackBatch {
    CallbackEvent *events;
    size_t count;
    size_t ignored;    // of types that change nothing
    size_t unreadable; // not an object, or without a type
} CallbackBatch;

typedef struct VendorCallback {
    const char *name; // the vendor's
    size_t body_max;
    bool (*verify)(
        const CallbackRequest *request, const CallbackKey *keys, size_t key_count,
        CallbackVerdict *ret, size_t *ret_key);
    // Everything in *ret lives in `arena`. ERROR_PERMANENT when the body is none of the vendor's.
    bool (*events)(Str body, Arena *arena, CallbackBatch *ret, Error *err);
} VendorCallback;
