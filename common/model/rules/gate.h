// SPDX-License-Identifier: Apache-2.0
// The gate: whether a notification goes out, when, and whether a guardian gets it. One pure
// decision over facts that others gathered: no I/O, the time is an argument. The order is the law:
// tenant suspended, tenant's policy, expired, suppression, opt-out and consent, preference,
// address, limits, quiet hours, digest, schedule. Whether a minor's notification goes to the
// guardian (gate_route) is asked before the address; the guardian's own notification is then
// decided by the guardian's facts.
#pragma once

#include "common/model/channel_set.h"
#include "common/model/enums.h"
#include "common/model/rules/digest_window.h"
#include "common/model/rules/limits.h"
#include "common/model/rules/quiet_hours.h"

// A tenant's settings for all its recipients. All zero: none.
typedef struct GateTenant {
    bool suspended;
    ChannelSet channels_off; // by its policy
    uint32_t categories_off; // a bit for each Category
    Zone *zone;              // NULL: UTC, given by the caller in GateCase.utc
    QuietHours quiet_hours;
    Limits limits;                        // of all that it sends
    Limits recipient_limits;              // of what one recipient or inline address gets
    Limits channel_limits[CHANNEL_COUNT]; // the same of one channel, beside those
    Limits recipient_channel_limits[CHANNEL_COUNT];
    OverLimit over_limit;
    GuardianRouting guardian_routing;
} GateTenant;

// A recipient's preferences about a category on a channel; CATEGORY_NONE and CHANNEL_NONE: any. The
// most specific one wins: (category, channel), (category, any), (any, channel), (any, any).
typedef struct GatePreference {
    Category category;
    Channel channel;
    bool off;
    DigestPlan plan;
} GatePreference;

typedef struct GateConsent {
    Category category;
    Channel channel;
    bool granted;
} GateConsent;

typedef struct GatePerson {
    bool unsubscribed; // from everything but critical and what ignores opt-outs
    bool minor;
    GuardianRouting guardian_routing; // unsaid: the tenant's
    Zone *zone;                       // NULL: the tenant's
    bool has_quiet_hours;             // false: the tenant's
    QuietHours quiet_hours;
    const GatePreference *preferences;
    size_t preference_count;
    const GateConsent *consents;
    size_t consent_count;
} GatePerson;

// Which list an address is suppressed in.
typedef enum GateListing {
    GATE_LISTING_NONE = 0, // not known
    GATE_LISTING_TENANT,
    GATE_LISTING_PLATFORM,
    GATE_LISTING_OLD_KEY, // found under an earlier hash key
    GATE_LISTING_DOMAIN,  // a guard rail's pause for a From domain and a mailbox provider
} GateListing;

// One notification.
typedef struct GateCase {
    const GateTenant *tenant;
    const GatePerson *person; // NULL: an address that no recipient has, or that several share
    // Others who have the address: what one of them refuses is refused. Their hours and digests do
    // not count.
    const GatePerson *const *owners;
    size_t owner_count;
    bool has_consent; // the caller says that the owner of an address without a recipient consented
    Zone *utc;
    Category category;
    Channel channel;
    Priority priority;
    int64_t scheduled_for_us;      // 0: now
    int64_t expires_at_us;         // 0: never
    bool has_address;              // active, on this channel
    SuppressionReason suppression; // of that address (suppressions_classify)
    GateListing listing;           // which list that is in, for the trace
    GuardianRouting routed;        // it came to this recipient as a guardian: COPY or REDIRECT
    bool no_digest;                // there is no template to show one with: nothing is gathered
    LimitPlace tenant_place;       // 0, 0: not counted (yet)
    LimitPlace recipient_place;
    LimitPlace channel_place; // of the tenant, and of the recipient, on this channel
    LimitPlace recipient_channel_place;
    int64_t now_us;
} GateCase;

typedef enum GateReason {
    GATE_NO_REASON = 0,
    // of what is suppressed
    GATE_TENANT_SUSPENDED,
    GATE_TENANT_POLICY, // the tenant sends nothing of this category, or on this channel
    GATE_EXPIRED,       // before it could go out
    GATE_HARD_BOUNCE,
    GATE_COMPLAINT,
    GATE_INVALID_ADDRESS,
    GATE_OPT_OUT,
    GATE_MANUAL,
    GATE_COMPLIANCE,
    GATE_UNREADABLE, // the suppression of the address cannot be read
    GATE_UNSUBSCRIBED,
    GATE_NO_CONSENT,
    GATE_PREFERENCE,
    GATE_NO_ADDRESS,
    GATE_RATE_LIMIT, // of what is suppressed or deferred
    // of what is deferred
    GATE_QUIET_HOURS,
    GATE_DIGEST,
    GATE_SCHEDULE,
    GATE_REASON_COUNT
} GateReason;

typedef enum GateVerdict {
    GATE_GO = 0,
    GATE_SUPPRESS,
    GATE_DEFER,
    GATE_GATHER, // into the digest window that is flushed at until_us
} GateVerdict;

typedef struct GateDecision {
    GateVerdict verdict;
    GateReason reason;
    int64_t until_us; // of GATE_DEFER and GATE_GATHER
    // What held for it, unless it is suppressed: for what is tried again later. No zone: UTC.
    QuietHours quiet;
    const Zone *zone;
} GateDecision;

// The reason_code of the status event: "tenant_suspended", "quiet_hours" ...; "" for none and for
// schedule, which the caller asked for.
const char *gate_reason_name(GateReason reason);
// The token of DEFERRED's subject: "quiet", "limit", "digest", "schedule"; "" for the others.
const char *gate_reason_deferred(GateReason reason);

// Everything before the limits: why it is not to go out, or GATE_NO_REASON. What is not refused is
// counted against the limits.
GateReason gate_refuse(const GateCase *facts);
// The whole.
GateDecision gate_decide(const GateCase *facts);

// GUARDIAN_NONE, COPY or REDIRECT. Under REDIRECT the minor's own address is not asked for:
// has_address and suppression are the guardian's business.
GuardianRouting gate_route(const GateTenant *tenant, const GatePerson *person);
