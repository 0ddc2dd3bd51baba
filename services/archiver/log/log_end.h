// SPDX-License-Identifier: Apache-2.0
// When segments end. Pure.
//
//   content, callbacks   after their span; a span of 0: all there is
//   by class             when the rows of that class end, or after `log` when that is earlier
//   longest              never: what is true now was said there, years ago
#pragma once

#include "common/eventlog/log_streams.h"
#include "common/model/retention/retention.h"

typedef struct LogEndRules {
    LogKept kept;
    RetentionPlan plan;
    RetentionSpan log; // all 0: as the rows
} LogEndRules;

typedef struct LogEnd { // of the segments of a stream, those that ended before older_us are over
    const char *stream;
    char class_code; // 0: of each class
    int64_t older_us;
} LogEnd;

enum { LOG_ENDS_MAX = 3 * LOG_STREAMS_MAX };

size_t log_ends(const LogEndRules *rules, int64_t now_us, LogEnd out[LOG_ENDS_MAX]);

// STENTOR_LOG_KEPT: "2y", "18m", "400d"; empty: as the rows. CONFIG: below 31 days, or no span.
bool log_span_parse(Str text, RetentionSpan *ret, Error *err);
