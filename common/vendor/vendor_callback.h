// SPDX-License-Identifier: Apache-2.0
// What a vendor calls back: `verify` decides from the raw bytes alone whether the vendor sent it,
// before anything is parsed; `events` reads it. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/enums.h"
#include "common/vendor/reply_words.h"
#include "common/vendor/vendor_api.h"

enum { CALLBACK_EVENTS_MAX = 10000, CALLBACK_TEXT_MAX = 512 };

// One key that callbacks may be signed with. Several are valid while one is being replaced.
typedef struct CallbackKey {
    Str name; // for metrics and logs: which one fits
    Str secret;
} CallbackKey;

typedef struct CallbackRequest {
    Str url; // whole, as the vendor was given it: some sign it
    const VendorPair *headers;
    size_t header_count;
    Str body;
    int64_t received_at_us;
    int64_t max_age_s; // of a signed time, either way; 0: any. Also see repeats_s
} CallbackRequest;

typedef enum CallbackVerdict {
    CALLBACK_GOOD,
    CALLBACK_UNSIGNED, // a header or a field that it needs is missing
    CALLBACK_STALE,    // its signed time is too far from now
    CALLBACK_BAD,      // no key fits
} CallbackVerdict;

// What a recipient wrote to a sender of the tenant's.
typedef struct CallbackReply {
    ReplyWord word;
    Str to;      // the sender: a number, a name, or the vendor's id of it
    Str text;    // empty: there is none
    Str kind;    // "text", "image" ...
    Str answers; // the vendor's id of the message that it answers; empty: it does not say
} CallbackReply;

typedef struct CallbackEvent {
    Str id;              // the vendor's own; empty: none
    Str notification_id; // "ntf_..."; empty: it names none of ours
    int32_t attempt;     // 0: it does not say
    Str message_id;      // the vendor's
    Status status;       // STATUS_NONE: it changes no status
    Outcome outcome;
    SuppressionReason suppress; // SUPPRESSION_NONE: none follows
    Str email;                  // or phone number; empty: not given, or not an address
    const char *reason_code;    // static; "" unless the status is an end, or a machine took a call
    Str enhanced_code;          // "5.1.1"
    Str text;                   // the vendor's, addresses masked, at most CALLBACK_TEXT_MAX bytes
    int64_t at_us;              // 0: not given
    bool machine;               // opened or clicked by a scanner or a proxy: it raises no status
    // What the vendor says of the price, as in SendResult.
    uint32_t segments;
    int64_t cost_micros;
    Str currency;
    Str price_category; // "marketing", "utility" ...; "free": it bills nothing
    // Of what is suppressed where email is empty, of ADDRESS_HASH_LEN bytes; NULL: not known.
    const uint8_t *address_hash;
    Str account;                // the vendor's id of the tenant's own number; empty: it names none
    const CallbackReply *reply; // NULL: it is none
} CallbackEvent;

// reason_code of a call that was not answered: another one may follow, so the dispatcher says what
// its status is.
#define CALLBACK_BUSY "busy"
#define CALLBACK_NO_ANSWER "no_answer"
bool callback_is_unanswered(Channel channel, const char *reason_code);

typedef struct CallbackBatch {
    CallbackEvent *events;
    size_t count;
    size_t ignored;    // of types that change nothing
    size_t unreadable; // not an object, or without a type
} CallbackBatch;

typedef struct VendorCallback {
    const char *name; // the vendor's
    Channel channel;
    size_t body_max;
    const char *const *reads; // the headers that verify reads, NULL at the end
    bool needs_all;           // without one of them it is never good
    // The URL must carry its capability: the signature does not cover the body, or there is none.
    bool needs_capability;
    // It signs the URL, so the receiver's public address must be known.
    bool signs_url;
    // It reports all to one address: an `attempt` in that is none of ours.
    bool one_address;
    // The body of the answer 200, and its type; NULL: application/json {}.
    const char *answer_type;
    const char *answer;
    int bad_status; // the answer to CALLBACK_BAD: what stops a vendor that would send it for ever
    int unsigned_status; // to CALLBACK_UNSIGNED; 0: 401. 503: the vendor signs when it repeats it
    // It repeats for so long with the time of the first: verify takes it, whatever max_age_s is.
    int64_t repeats_s;
    // May this be a key of the vendor's? ERROR_PERMANENT says what is expected.
    bool (*key_check)(Str secret, Error *err);
    // A key of the right form that fits nothing: checked where there is none, in the same time.
    Str (*key_none)(Arena *arena);
    bool (*verify)(
        const CallbackRequest *request, const CallbackKey *keys, size_t key_count,
        CallbackVerdict *ret, size_t *ret_key);
    // What a repeat of the same callback has in common with it, of one that verify called good;
    // empty: its bytes. NULL: always its bytes.
    Str (*repeat_key)(const CallbackRequest *request, Arena *arena);
    // A body of more than part_max bytes as several of at most so many, each one of the vendor's,
    // in `arena`. ERROR_PERMANENT when it is none, or one event is longer. NULL: it is never so
    // long.
    bool (*split)(
        Str body, size_t part_max, Arena *arena, Str **ret_parts, size_t *ret_count, Error *err);
    // It asks once, with GET, whether the address is ours: hub.verify_token is the URL's
    // capability, and hub.challenge is to be answered.
    bool challenges;
    // Events name the tenant's own number at the vendor, and those of a number that is not on the
    // tenant's list (`account_setting` of its keys) are another's. NULL: no such list.
    const char *account_setting;
    // Everything in *ret lives in `arena` or is static. ERROR_PERMANENT when the body is none of
    // the vendor's.
    bool (*events)(Str body, Arena *arena, CallbackBatch *ret, Error *err);
    // Its definition has verify and events (generic/definition.h), and its name is none of its own.
    bool by_definition;
} VendorCallback;

// NULL: no vendor of this name calls back.
const VendorCallback *vendor_callback_find(Str name);
// The n-th, for lists; NULL behind the last.
const VendorCallback *vendor_callback_at(size_t n);
