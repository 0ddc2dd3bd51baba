// SPDX-License-Identifier: Apache-2.0
// What is known of one notification, gathered from everywhere, as values: why_list.h makes the
// answer of it. All texts are borrowed; an empty one and a time of 0 are not known.
#pragma once

#include "services/gateway/notifications/notification_view.h"

// A suppression of the address, as CONFIG keeps it: the last 8 changes.
typedef struct WhySuppression {
    Str id;
    Category category; // NONE: every one
    SuppressionReason reason;
    int64_t made_us, expires_us, released_us;
    Str made_by, released_by;
} WhySuppression;
enum { WHY_SUPPRESSIONS_MAX = 16 };

// What it waits for in the scheduler.
typedef struct WhyWait {
    Str reason; // "quiet", "limit", "schedule", "digest", "retry"; empty: it does not wait there
    int64_t due_us;
    Str window_id;
} WhyWait;

// The send ledger's row of its last attempt.
typedef struct WhyClaim {
    int64_t number; // 0: there is none
    Str state;      // "claimed", "sent", "deferred", "failed", "parked"
    Str vendor;
    int64_t claimed_us, lease_us, due_us;
    int64_t unknown; // earlier claims of the attempt without an outcome
} WhyClaim;

typedef struct WhyConsent {
    Category category;
    Channel channel;
    bool granted;
    Str source;
    int64_t given_us;
} WhyConsent;

typedef struct WhyPreference {
    Category category;
    Channel channel;
    bool off;
    int64_t changed_us;
} WhyPreference;
enum { WHY_ENTRIES_MAX = 100 }; // of either

// As it is now.
typedef struct WhyPerson {
    bool known;
    int64_t unsubscribed_us;
    const WhyConsent *consents;
    size_t consent_count;
    const WhyPreference *preferences;
    size_t preference_count;
} WhyPerson;

typedef struct WhyDead {
    uint64_t sequence; // in DEAD; 0: none was found
    Str stage, reason;
    int64_t stored_us;
} WhyDead;

typedef struct WhyFacts {
    int64_t now_us;
    const HistoryRow *row;
    bool in_history; // false: it is what was accepted a moment ago
    const NotificationAttempt *attempts;
    size_t attempt_count;
    int64_t attempts_before;
    Str gate_trace; // empty: accepted by a release that wrote none
    const WhySuppression *suppressions;
    size_t suppression_count;
    bool suppressions_unread; // CONFIG did not answer
    WhyWait wait;
    WhyClaim claim;
    WhyPerson person;
    Str template_state; // of its version now: "active", "archived" ...
    WhyDead dead;
    bool dead_unread;             // DEAD did not answer, or had too much to look through
    const NotificationWait *down; // of its channel; NULL: not known
    Str digest_id;                // the digest that took it up
} WhyFacts;
