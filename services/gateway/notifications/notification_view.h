// SPDX-License-Identifier: Apache-2.0
// A notification as GET /v1/notifications/{id} shows it: from a row of history, else as its row of
// the accept log has it (common/history/accepted.h). Pure.
#pragma once

#include "common/base/buf.h"
#include "common/history/fold.h"

enum { NOTIFICATION_JSON_MAX = 1024 * 1024 };

// The columns that are shown, in their order after status, reason_code and reason.
// clang-format off
static const FoldText notification_texts[] = {FOLD_CHANNEL, FOLD_CATEGORY, FOLD_PRIORITY, FOLD_TEMPLATE,
                                              FOLD_TEMPLATE_VERSION, FOLD_RECIPIENT, FOLD_CORRELATION, FOLD_BATCH};
static const FoldTime notification_times[] = {FOLD_SCHEDULED_FOR, FOLD_QUEUED, FOLD_SCHEDULED, FOLD_RENDERED, FOLD_SENT,
                                              FOLD_DELIVERED, FOLD_OPENED, FOLD_CLICKED, FOLD_ENDED};
// clang-format on
enum {
    NOTIFICATION_TEXTS = sizeof notification_texts / sizeof *notification_texts,
    NOTIFICATION_TIMES = sizeof notification_times / sizeof *notification_times,
};

// What a channel's notifications wait for outside: its vendor, when dispatchers cannot reach it.
typedef struct NotificationWait {
    char vendor[40];
    int64_t since_us; // 0: nothing is known against it
} NotificationWait;

// One attempt, with what it costs. The vendor's own words are masked where they were stored.
typedef struct NotificationAttempt {
    int64_t number;
    Str vendor, outcome, code, enhanced_code;
    Str credential, route, vendor_message_id, reply;
    bool was_unknown;                // an earlier try of it has an unknown outcome
    int64_t retry_after_ms;          // as the vendor asked; 0: it did not
    int64_t started_us, finished_us; // 0: not known
    int64_t segments;                // 0: not known, or none
    int64_t cost_micros;             // below 0: not known
    Str currency;
    bool estimated; // by the operator's prices; else the vendor says so
} NotificationAttempt;

enum { NOTIFICATION_ATTEMPTS_MAX = 50 }; // shown: the last ones

// An attempt as an object: `whole` with the vendor's words, credential and route.
void notification_print_attempt(Buf *out, const NotificationAttempt *attempt, bool whole);

// An object without what is not known. attempts: of history, in their order. wait: of its channel,
// shown while it is under way; NULL: nothing. `ended_at` is there when the status is an end: a mail
// that was sent again after its end keeps the time of that end in history.
// The last brace is left out, for members that follow. whole: of the attempts, with the vendor's
// words.
void notification_print_open(
    Buf *out, const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    const NotificationWait *wait, bool whole);
// suppressed, superseded, failed, bounced, complained.
bool notification_is_end(Status status);
