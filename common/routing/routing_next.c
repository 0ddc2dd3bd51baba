// SPDX-License-Identifier: Apache-2.0
#include "common/routing/routing_next.h"

#include <stddef.h>

// ---- names ----

typedef struct Named {
    const char *name;
    unsigned value;
} Named;

static const Named FALLBACKS[] = {
    {"unsent", FALLBACK_UNSENT},       {"retry", FALLBACK_RETRY}, {"config", FALLBACK_CONFIG},
    {"elsewhere", FALLBACK_ELSEWHERE}, {"open", FALLBACK_OPEN},   {"degraded", FALLBACK_DEGRADED},
};

static const Named UNKNOWNS[] = {
    {"", ROUTING_UNKNOWN_UNSAID},   {"park", ROUTING_PARK},
    {"resend", ROUTING_RESEND},     {"resend_or_failover", ROUTING_RESEND_OR_FAILOVER},
    {"failover", ROUTING_FAILOVER}, {"count_as_sent", ROUTING_COUNT_AS_SENT},
};

unsigned fallback_from_name(Str name)
{
    for (size_t i = 0; i < sizeof FALLBACKS / sizeof FALLBACKS[0]; i++) {
        if (str_eq(name, str_from(FALLBACKS[i].name))) {
            return FALLBACKS[i].value;
        }
    }
    return 0;
}

bool routing_unknown_from_name(Str name, RoutingUnknown *ret)
{
    for (size_t i = 0; i < sizeof UNKNOWNS / sizeof UNKNOWNS[0]; i++) {
        if (str_eq(name, str_from(UNKNOWNS[i].name))) {
            *ret = (RoutingUnknown)UNKNOWNS[i].value;
            return true;
        }
    }
    return false;
}

const char *routing_unknown_name(RoutingUnknown policy)
{
    for (size_t i = 0; i < sizeof UNKNOWNS / sizeof UNKNOWNS[0]; i++) {
        if (UNKNOWNS[i].value == (unsigned)policy) {
            return UNKNOWNS[i].name;
        }
    }
    return "";
}

const char *next_action_name(NextAction action)
{
    switch (action) {
    case NEXT_END:
        return "end";
    case NEXT_SAME_CLAIM:
        return "same_claim";
    case NEXT_FALLBACK:
        return "fallback";
    case NEXT_WAIT:
        return "wait";
    case NEXT_LADDER:
        return "ladder";
    case NEXT_SAME_KEY:
        return "same_key";
    case NEXT_ASK:
        return "ask";
    case NEXT_SETTLE:
        return "settle";
    case NEXT_PARK:
        return "park";
    case NEXT_RESEND:
        return "resend";
    case NEXT_FAILOVER:
        return "failover";
    case NEXT_SENT:
        return "sent";
    case NEXT_EXPIRE:
        return "expire";
    case NEXT_COUNT:
        break;
    }
    return "";
}

// ---- defaults ----

typedef struct ChannelDefault {
    int64_t settle_ms;
    RoutingUnknown unknown;
} ChannelDefault;

static const ChannelDefault CHANNEL_DEFAULTS[CHANNEL_COUNT] = {
    [CHANNEL_NONE] = {120000, ROUTING_PARK},     [CHANNEL_EMAIL] = {120000, ROUTING_PARK},
    [CHANNEL_SMS] = {30000, ROUTING_FAILOVER},   [CHANNEL_WHATSAPP] = {30000, ROUTING_FAILOVER},
    [CHANNEL_VOICE] = {30000, ROUTING_FAILOVER}, [CHANNEL_PUSH] = {0, ROUTING_RESEND},
    [CHANNEL_INAPP] = {0, ROUTING_RESEND},       [CHANNEL_WEBHOOK] = {0, ROUTING_RESEND},
};

enum { SECURITY_SETTLE_MS = 10000 };

// A chat message that comes twice is seen twice, which is better than an alert that is lost.
static bool may_be_missed(Category category)
{
    return category == CATEGORY_REMINDER || category == CATEGORY_MARKETING ||
           category == CATEGORY_SOCIAL;
}

static ChannelDefault default_of(Channel channel, Category category)
{
    bool known = channel > CHANNEL_NONE && channel < CHANNEL_COUNT;
    ChannelDefault by_channel = CHANNEL_DEFAULTS[known ? channel : CHANNEL_NONE];
    if (channel == CHANNEL_WEBHOOK && may_be_missed(category)) {
        by_channel.unknown = ROUTING_PARK;
    }
    if (by_channel.unknown == ROUTING_RESEND || channel == CHANNEL_WEBHOOK) {
        return by_channel; // push, in-app: the recipient sees one, however often it is sent
    }
    if (category == CATEGORY_SECURITY) {
        return (ChannelDefault){SECURITY_SETTLE_MS, ROUTING_RESEND_OR_FAILOVER};
    }
    if (category == CATEGORY_MARKETING || category == CATEGORY_SOCIAL) {
        by_channel.unknown = ROUTING_COUNT_AS_SENT;
    }
    return by_channel;
}

RoutingRules routing_rules(
    Channel channel, Category category, unsigned fallback_on, RoutingUnknown unknown,
    int64_t settle_ms)
{
    ChannelDefault unsaid = default_of(channel, category);
    return (RoutingRules){
        .fallback_on = fallback_on != 0 ? fallback_on : (unsigned)FALLBACK_DEFAULT,
        .unknown = unknown != ROUTING_UNKNOWN_UNSAID ? unknown : unsaid.unknown,
        .settle_ms = settle_ms > 0 ? settle_ms : unsaid.settle_ms};
}

// ---- the table ----

typedef enum Case {
    CASE_ACCEPTED,
    CASE_ENDED, // TERMINAL, BAD_ADDRESS
    CASE_UNSENT,
    CASE_RETRY,
    CASE_CONFIG,
    CASE_ELSEWHERE,
    CASE_THROTTLED,
    CASE_UNKNOWN,
    CASE_RELEASED,
} Case;

enum {
    OTHER = 1 << 0,     // another vendor may take it
    ALLOWED = 1 << 1,   // fallback_on names this outcome
    IMPATIENT = 1 << 2, // the wait is longer than its lane may wait
    KEY = 1 << 3,       // the vendor still knows the key of the call
    UP = 1 << 4,        // this vendor's breaker is closed
    ASKABLE = 1 << 5,   // it can be asked (once more)
    ABSENT = 1 << 6,    // asked as often as it is asked, and it never had the mail
    CALLBACK = 1 << 7,  // its callback may still come
    PARK = 1 << 8,
    RESEND = 1 << 9,
    EITHER = 1 << 10, // resend or failover
    FAILOVER = 1 << 11,
    COUNTS = 1 << 12,
    OTHER_SHUT = 1 << 13, // another vendor may take it once it is up
};

// The first row of the case that needs nothing that is not there, and lacks nothing that is.
typedef struct Row {
    Case is;
    int needs, lacks;
    NextAction action;
    const char *why;
} Row;

// clang-format off
static const Row ROWS[] = {
    {CASE_ACCEPTED,  0,                0,  NEXT_END,        "accepted"},
    {CASE_ENDED,     0,                0,  NEXT_END,        "refused for good; no other vendor would take it"},
    {CASE_UNSENT,    OTHER | ALLOWED,  0,  NEXT_SAME_CLAIM, "not sent; another vendor is there"},
    {CASE_UNSENT,    0,                0,  NEXT_LADDER,     "not sent; no other vendor may take it"},
    {CASE_RETRY,     OTHER | ALLOWED,  0,  NEXT_FALLBACK,   "refused for now; another vendor is there"},
    {CASE_RETRY,     0,                0,  NEXT_LADDER,     "refused for now"},
    {CASE_CONFIG,    OTHER | ALLOWED,  0,  NEXT_FALLBACK,   "the credential is refused; another vendor is there"},
    {CASE_CONFIG,    0,                0,  NEXT_WAIT,       "the credential is refused; it waits for the next probe"},
    {CASE_ELSEWHERE, OTHER | ALLOWED,  0,  NEXT_FALLBACK,   "refused by this vendor only; another one is there"},
    {CASE_ELSEWHERE, 0,                0,  NEXT_END,        "refused by this vendor; no other one may take it"},
    {CASE_THROTTLED, OTHER | IMPATIENT, 0, NEXT_FALLBACK,   "throttled for longer than it may wait; another vendor is there"},
    {CASE_THROTTLED, 0,                0,  NEXT_WAIT,       "throttled"},
    {CASE_RELEASED,  0,                0,  NEXT_WAIT,       "released"},
    {CASE_UNKNOWN,   KEY | UP,         0,  NEXT_SAME_KEY,   "unknown; the vendor knows the key of the call"},
    {CASE_UNKNOWN,   KEY,              UP, NEXT_WAIT,       "unknown; the vendor that knows the key is down"},
    {CASE_UNKNOWN,   ASKABLE,          0,  NEXT_ASK,        "unknown; the vendor can be asked"},
    {CASE_UNKNOWN,   ABSENT | OTHER | ALLOWED, 0, NEXT_SAME_CLAIM, "the vendor never had it; another one is there"},
    {CASE_UNKNOWN,   ABSENT,           0,  NEXT_LADDER,     "the vendor never had it"},
    {CASE_UNKNOWN,   CALLBACK,         0,  NEXT_SETTLE,     "unknown; a callback may settle it"},
    {CASE_UNKNOWN,   PARK,             0,  NEXT_PARK,       "unknown; policy park"},
    {CASE_UNKNOWN,   COUNTS,           0,  NEXT_SENT,       "unknown; policy count_as_sent"},
    {CASE_UNKNOWN,   RESEND | UP,      0,  NEXT_RESEND,     "unknown; policy resend"},
    {CASE_UNKNOWN,   RESEND,           UP, NEXT_WAIT,       "unknown; policy resend, and the vendor is down"},
    {CASE_UNKNOWN,   EITHER | UP,      0,  NEXT_RESEND,     "unknown; the vendor is up, sent again there"},
    {CASE_UNKNOWN,   EITHER | OTHER,   UP, NEXT_FAILOVER,   "unknown; the vendor is down, sent again at another one"},
    {CASE_UNKNOWN,   EITHER,           UP | OTHER, NEXT_WAIT, "unknown; no vendor is up to send it again"},
    {CASE_UNKNOWN,   FAILOVER | OTHER, 0,  NEXT_FAILOVER,   "unknown; policy failover"},
    {CASE_UNKNOWN,   FAILOVER | OTHER_SHUT, OTHER, NEXT_WAIT, "unknown; policy failover, and the other vendor is down"},
    {CASE_UNKNOWN,   FAILOVER,         OTHER | OTHER_SHUT, NEXT_PARK,    "unknown; policy failover, and no other vendor may take it"},
};
// clang-format on

static Case case_of(const RoutingFacts *facts)
{
    static const Case ANSWERED[] = {
        [REPLY_ACCEPTED] = CASE_ACCEPTED,   [REPLY_RETRY] = CASE_RETRY,
        [REPLY_THROTTLED] = CASE_THROTTLED, [REPLY_TERMINAL] = CASE_ENDED,
        [REPLY_BAD_ADDRESS] = CASE_ENDED,   [REPLY_CONFIG] = CASE_CONFIG,
        [REPLY_ELSEWHERE] = CASE_ELSEWHERE,
    };
    switch (facts->state) {
    case SEND_ANSWERED:
        return ANSWERED[facts->reply];
    case SEND_UNSENT:
        return CASE_UNSENT;
    case SEND_UNKNOWN:
        return CASE_UNKNOWN;
    case SEND_RELEASED:
        return CASE_RELEASED;
    }
    return CASE_RELEASED;
}

static unsigned fallback_of(Case is)
{
    switch (is) {
    case CASE_UNSENT:
    case CASE_UNKNOWN: // found to be unsent
        return FALLBACK_UNSENT;
    case CASE_RETRY:
        return FALLBACK_RETRY;
    case CASE_CONFIG:
        return FALLBACK_CONFIG;
    case CASE_ELSEWHERE:
        return FALLBACK_ELSEWHERE;
    case CASE_ACCEPTED:
    case CASE_ENDED:
    case CASE_THROTTLED:
    case CASE_RELEASED:
        return 0;
    }
    return 0;
}

static bool is_impatient(const RoutingFacts *facts)
{
    switch (facts->priority) {
    case PRIORITY_CRITICAL:
        return facts->retry_after_ms > ROUTING_PATIENCE_CRITICAL_MS;
    case PRIORITY_HIGH:
        return facts->retry_after_ms > ROUTING_PATIENCE_HIGH_MS;
    case PRIORITY_NONE:
    case PRIORITY_NORMAL:
    case PRIORITY_LOW:
    case PRIORITY_COUNT:
        return false;
    }
    return false;
}

static int policy_bit(RoutingUnknown policy)
{
    switch (policy) {
    case ROUTING_UNKNOWN_UNSAID:
    case ROUTING_PARK:
        return PARK;
    case ROUTING_RESEND:
        return RESEND;
    case ROUTING_RESEND_OR_FAILOVER:
        return EITHER;
    case ROUTING_FAILOVER:
        return FAILOVER;
    case ROUTING_COUNT_AS_SENT:
        return COUNTS;
    }
    return PARK;
}

static int holds_of(const RoutingRules *rules, const RoutingFacts *facts, Case is)
{
    bool key =
        facts->key_known_s > 0 && facts->key_age_ms < facts->key_known_s * 10 * ROUTING_KEY_PERCENT;
    bool asked_out = facts->asked >= ROUTING_ASKS_MAX;
    int holds = policy_bit(rules->unknown);
    holds |= facts->other_usable ? OTHER : 0;
    holds |= facts->other_shut ? OTHER_SHUT : 0;
    holds |= (rules->fallback_on & fallback_of(is)) != 0 ? ALLOWED : 0;
    holds |= is_impatient(facts) ? IMPATIENT : 0;
    holds |= key ? KEY : 0;
    holds |= facts->vendor_up ? UP : 0;
    holds |= facts->can_be_asked && !asked_out ? ASKABLE : 0;
    holds |= facts->can_be_asked && asked_out && facts->asked_not_found ? ABSENT : 0;
    holds |= facts->calls_back && !facts->settled && rules->settle_ms > 0 ? CALLBACK : 0;
    return holds;
}

static int64_t wait_of(
    const RoutingRules *rules, const RoutingFacts *facts, Case is, NextAction action)
{
    switch (action) {
    case NEXT_ASK:
        return facts->asked == 0 ? ROUTING_ASK_FIRST_MS : ROUTING_ASK_AGAIN_MS;
    case NEXT_SETTLE:
        return rules->settle_ms;
    case NEXT_WAIT:
        return is == CASE_THROTTLED ? facts->retry_after_ms : 0;
    default:
        return 0;
    }
}

// Would the recipient get it, now or later?
static bool sends_again(NextAction action)
{
    return action == NEXT_SAME_CLAIM || action == NEXT_FALLBACK || action == NEXT_WAIT ||
           action == NEXT_LADDER || action == NEXT_SAME_KEY || action == NEXT_RESEND ||
           action == NEXT_FAILOVER;
}

RoutingNext routing_next(const RoutingRules *rules, const RoutingFacts *facts)
{
    Case is = case_of(facts);
    int holds = holds_of(rules, facts, is);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const Row *row = &ROWS[i];
        if (row->is != is || (row->needs & ~holds) != 0 || (row->lacks & holds) != 0) {
            continue;
        }
        if (facts->expired && sends_again(row->action)) {
            return (RoutingNext){NEXT_EXPIRE, 0, "its time is over"};
        }
        return (RoutingNext){row->action, wait_of(rules, facts, is, row->action), row->why};
    }
    return (RoutingNext){NEXT_PARK, 0, "no rule says what to do"};
}

int64_t routing_turn_wait_ms(int64_t wait_ms, int32_t attempt)
{
    int64_t longer_ms = wait_ms + wait_ms * (attempt > 1 ? attempt - 1 : 0) / 20;
    int64_t most_ms = wait_ms > ROUTING_TURN_WAIT_MAX_MS ? wait_ms : ROUTING_TURN_WAIT_MAX_MS;
    return longer_ms < most_ms ? longer_ms : most_ms;
}
