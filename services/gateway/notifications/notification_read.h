// SPDX-License-Identifier: Apache-2.0
// One notification read for a route below /v1/notifications/{id}: from history, and until history
// has it from the accept log. Law: never 404 after a 202 while the accept log has the request. One
// round trip for what history has, one more for what it has not. While as many questions as help
// are on their way to history, those that come wait and are asked together.
#pragma once

#include "common/api/api.h"
#include "common/db/db.h"
#include "services/gateway/notifications/notification_view.h"

// Those that wait for the next question: at most the HTTP server's open requests. Zeroed at first;
// it outlives its reads.
typedef struct NotificationQueue {
    struct NotificationRead *first;
    struct NotificationRead *last;
    int on_their_way; // questions
} NotificationQueue;

// Where to read: `history` may be a standby, which lags.
typedef struct NotificationPools {
    DbPool *primary;
    DbPool *history;
    NotificationQueue *queue;
} NotificationPools;

typedef struct NotificationRead {
    ApiCall *base;
    const NotificationPools *pools;
    Str id;
    int64_t created_at_us;
    HistoryRow row;
    bool in_history;                     // false: it is what was accepted
    const NotificationAttempt *attempts; // the last NOTIFICATION_ATTEMPTS_MAX, in their order
    size_t attempt_count;
    int64_t attempts_before; // that are left out
    struct NotificationRead *next; // in the queue, then in its question
    void (*done)(void *ctx, struct NotificationRead *read);
    void *ctx;
} NotificationRead;

// Everything is in the request's arena. `done` comes once, or the call is answered: 404 for what
// is not of this tenant (also for an id of a time to come), 404 with the unit's name for what is
// archived, 503 while Postgres is away.
typedef void (*NotificationReadDone)(void *ctx, NotificationRead *read);
void notification_read(
    ApiCall *base, const NotificationPools *pools, NotificationReadDone done, void *ctx);
// The same, with at most so many attempts behind that number instead of the last ones.
void notification_read_attempts(
    ApiCall *base, const NotificationPools *pools, int64_t after, size_t at_most,
    NotificationReadDone done, void *ctx);
