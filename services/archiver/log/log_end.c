// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_end.h"

#include "common/archive/unit/unit_state.h"
#include "common/base/clock.h"

enum { LOG_DAYS_MIN = 31, DAYS_OF_MONTH = 30 };

// The newest start of a month that is so long ago: a unit's span counts from the end of its period,
// so a month's segments end no sooner than its rows.
static int64_t month_before(int64_t now_us, RetentionSpan span)
{
    int64_t start_us = 0;
    int64_t end_us = 0;
    clock_month(now_us, &start_us, &end_us);
    while (start_us > 0 && unit_span_after(start_us, span) > now_us) {
        clock_month(start_us - 1, &start_us, &end_us);
    }
    return start_us;
}

static size_t add_classes(
    const LogEndRules *rules, const char *stream, int64_t now_us, LogEnd *out, size_t count)
{
    bool own = rules->log.months > 0 || rules->log.days > 0;
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        int64_t older_us = month_before(now_us, rules->plan.of[i].kept);
        int64_t own_us = own ? month_before(now_us, rules->log) : older_us;
        out[count++] = (LogEnd){
            stream, retention_class_code((RetentionClass)i), own_us > older_us ? own_us : older_us};
    }
    return count;
}

size_t log_ends(const LogEndRules *rules, int64_t now_us, LogEnd out[LOG_ENDS_MAX])
{
    size_t stream_count;
    const LogStream *streams = log_streams(&stream_count);
    size_t count = 0;
    for (size_t i = 0; i < stream_count; i++) {
        switch (streams[i].keeping) {
        case KEPT_CONTENT:
        case KEPT_CALLBACK:
            out[count++] = (LogEnd){
                streams[i].stream, 0, now_us - log_stream_kept_us(&streams[i], &rules->kept)};
            break;
        case KEPT_BY_CLASS:
            count = add_classes(rules, streams[i].stream, now_us, out, count);
            break;
        case KEPT_NOT:
        case KEPT_LONGEST:
            break;
        }
    }
    return count;
}

bool log_span_parse(Str text, RetentionSpan *ret, Error *err)
{
    *ret = (RetentionSpan){0};
    return text.len == 0 ||
           (retention_span_parse(text, ret) &&
            ret->months * DAYS_OF_MONTH + ret->days >= LOG_DAYS_MIN) ||
           error_set(
               err, ERROR_CONFIG,
               "STENTOR_LOG_KEPT is '" STR_FMT
               "': expected at least 31d, as 400d, 18m (months) or 2y; empty: as long as the rows",
               STR_ARG(str_slice(text, 0, 40)));
}
