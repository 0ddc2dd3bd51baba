// SPDX-License-Identifier: Apache-2.0
// The retry ladder: when a failed attempt is tried again, and what a reply means. Pure: time and
// chance are arguments.
#pragma once

#include "common/base/error.h"
#include "common/model/enums.h"

enum { LADDER_MAX = 10, LADDER_WAIT_MAX_S = 604800 };

typedef struct Ladder {
    int32_t rung_s[LADDER_MAX]; // seconds to wait before retry 1, 2 ...
    uint32_t count;
} Ladder;

// 5 min, 15 min, 1 h, 4 h, 12 h.
Ladder ladder_default(void);
// "300,900,3600"; each 1..LADDER_WAIT_MAX_S. false: not that.
bool ladder_parse(Str text, Ladder *ret);

// A ladder for each channel.
typedef struct Ladders {
    Ladder of[CHANNEL_COUNT];
} Ladders;

// "300,900,3600" for every channel, or "email=300,900;sms=60,120"; channels that are not named have
// the default ladder, voice 2 min and 10 min. ERROR_CONFIG says what is wrong and what is expected,
// without the option's name.
bool ladders_parse(Str text, Ladders *ret, Error *err);
// Never NULL: a value outside the enumeration has that of a channel that is not named.
const Ladder *ladders_of(const Ladders *ladders, Channel channel);

// What one request says of its own retries; all zero: nothing.
typedef struct OwnRetries {
    const uint32_t *wait_s; // before retry 1, 2 ...
    size_t count;
    uint32_t max_attempts; // 0: one more than there are waits
} OwnRetries;

static inline bool has_own_retries(const OwnRetries *own)
{
    return own->count > 0 || own->max_attempts > 0;
}
// Its ladder, over that of the installation: its own waits or else those of `base`, cut or its last
// wait repeated for max_attempts. ERROR_PERMANENT: a wait is not 1..LADDER_WAIT_MAX_S, there are
// over LADDER_MAX of them, or max_attempts is over LADDER_MAX + 1.
bool ladder_own(const Ladder *base, const OwnRetries *own, Ladder *ret, Error *err);

// When to try again after `rung` retries were used; false: the ladder is used up. Jitter adds 0 to
// 10 %, chosen by random01 in [0, 1). A retry_after_ms above the rung's wait wins, up to
// LADDER_WAIT_MAX_S.
bool ladder_next(
    const Ladder *ladder, uint32_t rung, int64_t now_us, uint32_t retry_after_ms, double random01,
    int64_t *ret_due_us);

typedef enum ReplyClass {
    REPLY_ACCEPTED,    // 2xx
    REPLY_RETRY,       // transient: uses a rung
    REPLY_THROTTLED,   // transient and about rate: tried again without using a rung (421, 450,
                       // 452, 4.2.2 ..., Retry-After)
    REPLY_TERMINAL,    // can never succeed
    REPLY_BAD_ADDRESS, // terminal, and the address is the reason
                       // (5.1.1, 5.1.2, 5.1.3, 5.1.6, 5.1.10): suppressed later
    REPLY_CONFIG,      // the credential, the sender or the account is at fault, never the message
    REPLY_ELSEWHERE,   // terminal at this vendor only: another one may take it
} ReplyClass;

// "bad_address" ...: in the ledger (but "accepted", which is none there) and in definitions.
const char *reply_class_name(ReplyClass reply);
bool reply_class_from_name(Str name, ReplyClass *ret);

// enhanced: "4.2.2" or empty. Source: RFC 5321 4.2, RFC 3463.
ReplyClass reply_classify(int smtp_code, Str enhanced);
