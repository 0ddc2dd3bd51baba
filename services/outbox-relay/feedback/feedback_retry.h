// SPDX-License-Identifier: Apache-2.0
// FeedbackRetry: writes feedback that could not be written at first, because the application held
// the row or the table rejected the change. A rejected row is retried alone, with growing pauses,
// and finally put aside with the reason. Any number of relays may do so at once.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct FeedbackRetry FeedbackRetry;

FeedbackRetry *feedback_retry_new(DbPool *pool, const RelaySql *sql); // borrows both
void feedback_retry_start(FeedbackRetry *retry); // once the statements are complete; requests only
void feedback_retry_stop(FeedbackRetry *retry, void (*on_stopped)(void *ctx), void *ctx);
void feedback_retry_free(FeedbackRetry *retry);
// NULL, or why no feedback can be written now.
const char *feedback_retry_trouble(const FeedbackRetry *retry);
