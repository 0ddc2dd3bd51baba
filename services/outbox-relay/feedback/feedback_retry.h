// SPDX-License-Identifier: Apache-2.0
// FeedbackRetry: rows whose feedback could not be written when it came, because the
// application held them or their table refused the change. It tells them later, those that are
// refused alone and ever more seldom, until such a row is put aside in `refused`. Any number of
// relays may do it at once.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct FeedbackRetry FeedbackRetry;

FeedbackRetry *feedback_retry_new(DbPool *pool, const RelaySql *sql); // borrows both
void feedback_retry_start(FeedbackRetry *retry); // once the statements are complete; requests only
void feedback_retry_stop(FeedbackRetry *retry, void (*on_stopped)(void *ctx), void *ctx);
void feedback_retry_free(FeedbackRetry *retry);
// NULL, or why no row takes its feedback now.
const char *feedback_retry_trouble(const FeedbackRetry *retry);
