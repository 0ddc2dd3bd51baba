// SPDX-License-Identifier: Apache-2.0
// What happens after a send at a vendor: the table of channels.md 4.3 as data. Law: nothing but an
// `unknown` policy sends a second time what may have been sent, and never at another vendor unless
// the policy is failover. Pure.
#pragma once

#include "common/model/enums.h"
#include "common/vendor/send_result.h"

// What a route may fall back on, as bits.
typedef enum FallbackOn {
    FALLBACK_UNSENT = 1,
    FALLBACK_RETRY = 2,
    FALLBACK_CONFIG = 4,
    FALLBACK_ELSEWHERE = 8,
    FALLBACK_OPEN = 16,     // the breaker is open, or an operator has suspended it
    FALLBACK_DEGRADED = 32, // too few are delivered
    FALLBACK_DEFAULT = FALLBACK_UNSENT | FALLBACK_CONFIG | FALLBACK_ELSEWHERE | FALLBACK_OPEN,
} FallbackOn;

// "unsent" ...; 0: no such name.
unsigned fallback_from_name(Str name);

typedef enum RoutingUnknown {
    ROUTING_UNKNOWN_UNSAID = 0, // by category and channel
    ROUTING_PARK,               // a dead letter for a person
    ROUTING_RESEND,             // again at the same vendor
    ROUTING_RESEND_OR_FAILOVER, // again at the same vendor when it is up, else at another one
    ROUTING_FAILOVER,           // at another vendor
    ROUTING_COUNT_AS_SENT,
} RoutingUnknown;

// "park", "resend", "resend_or_failover", "failover", "count_as_sent"; "" is UNSAID. false: none of
// them.
bool routing_unknown_from_name(Str name, RoutingUnknown *ret);
const char *routing_unknown_name(RoutingUnknown policy);

// A route's rules, or the defaults.
typedef struct RoutingRules {
    unsigned fallback_on;   // of FallbackOn
    RoutingUnknown unknown; // never UNSAID
    int64_t settle_ms;      // how long an unknown outcome waits for a callback first
} RoutingRules;

// fallback_on 0, UNSAID and settle_ms 0 stand for what a route does not say: fallback_on unsent,
// config, elsewhere and open; unknown by category (security: resend or fail over after 10 s;
// marketing and social: settle, then count as sent; others: settle, then park an e-mail, fail over
// an SMS, a WhatsApp message or a call), but push and in-app: resend, for the recipient sees one;
// webhook: resend, but park reminders, marketing and social; settle e-mail 120 s, SMS, WhatsApp and
// voice 30 s, others 0.
RoutingRules routing_rules(
    Channel channel, Category category, unsigned fallback_on, RoutingUnknown unknown,
    int64_t settle_ms);

// What the vendor and the world say, beside the result.
typedef struct RoutingFacts {
    SendState state;
    ReplyClass reply;        // SEND_ANSWERED
    uint32_t retry_after_ms; // SEND_ANSWERED
    Priority priority;       // its lane: how long it may wait for a throttled vendor
    bool expired;            // what would be sent again is sent no more
    bool other_usable;       // another vendor of the route is left, with a closed breaker
    bool other_shut;         // another one is left, and is down or suspended now
    bool vendor_up;          // this vendor's breaker is closed
    // SEND_UNKNOWN:
    int64_t key_known_s;  // the vendor's; 0: it knows no keys
    int64_t key_age_ms;   // since the first call with this key
    bool can_be_asked;    // VendorApi.ask is there
    uint32_t asked;       // how often it was asked
    bool asked_not_found; // and each time it said clearly that it has no such mail
    bool calls_back;      // it reports what it delivers
    bool settled;         // settle_ms have passed without a callback
} RoutingFacts;

typedef enum NextAction {
    NEXT_END,        // the outcome stands: accepted, or failed for good
    NEXT_SAME_CLAIM, // at the other vendor, in the same attempt and claim: nothing was sent
    NEXT_FALLBACK,   // recorded; the next attempt is due now at the other vendor, without a rung
    NEXT_WAIT,       // again at this vendor without a rung, in wait_ms; 0: it names no time, so at
                     // the breaker's next probe, or after as long as a rung when it is closed
    NEXT_LADDER,     // again on the ladder's next rung
    NEXT_SAME_KEY,   // now at this vendor with the same key: exactly once
    NEXT_ASK,        // ask the vendor in wait_ms
    NEXT_SETTLE,     // wait for a callback for wait_ms, then decide with `settled`
    NEXT_PARK,       // a dead letter for a person
    NEXT_RESEND,     // now at this vendor, `was_unknown`
    NEXT_FAILOVER,   // now at the other vendor, `was_unknown`; the row names both
    NEXT_SENT,       // counts as sent
    NEXT_EXPIRE,     // its time is over: not sent again
    NEXT_COUNT
} NextAction;

typedef struct RoutingNext {
    NextAction action;
    int64_t wait_ms;
    const char *why; // static, for an operator: "unsent; another vendor is there"
} RoutingNext;

enum {
    ROUTING_PATIENCE_CRITICAL_MS = 2000,
    ROUTING_PATIENCE_HIGH_MS = 30000,
    ROUTING_ASK_FIRST_MS = 10000, // after the unknown outcome
    ROUTING_ASK_AGAIN_MS = 50000, // after the first asking: 60 s in all
    ROUTING_ASKS_MAX = 2,
    ROUTING_KEY_PERCENT = 80, // of the time that a vendor knows a key
    ROUTING_TURN_WAIT_MAX_MS = 900000,
    ROUTING_PROBE_JITTER_MS = 30000, // what waits for a probe comes back within so long after it
};

RoutingNext routing_next(const RoutingRules *rules, const RoutingFacts *facts);
// How long a mail waits whose turn at the vendor never came: `wait_ms` at first, and by a twentieth
// of it longer with each attempt, up to 15 minutes. So the attempts that a mail has last for days
// while a day's quota is used up.
int64_t routing_turn_wait_ms(int64_t wait_ms, int32_t attempt);
const char *next_action_name(NextAction action); // "same_claim" ...
