// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/model/status.h"

typedef struct Steps {
    TimelineStep *at;
    size_t count;
} Steps;

// ---- the steps ----

static TimelineStep *add(Steps *steps, Str status, int64_t at_us, int order)
{
    TimelineStep *step = &steps->at[steps->count++];
    *step = (TimelineStep){.status = status, .at_us = at_us, .order = order};
    return step;
}

static int order_of(Status status)
{
    return 10 * status_rank(status);
}

// Which status the event of an attempt had: all but these took the message.
static Status status_of(const NotificationAttempt *attempt)
{
    static const struct {
        Outcome outcome;
        Status status;
    } others[] = {
        {OUTCOME_REJECTED_RETRYABLE, STATUS_SENDING},
        {OUTCOME_TIMEOUT, STATUS_SENDING},
        {OUTCOME_REJECTED_TERMINAL, STATUS_FAILED},
        {OUTCOME_FAILED, STATUS_FAILED},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (str_eq(attempt->outcome, str_from(outcome_name(others[i].outcome)))) {
            return others[i].status;
        }
    }
    return STATUS_SENT;
}

// The last step of that status that an attempt brought; NULL: none did.
static TimelineStep *find(const Steps *steps, Status status)
{
    for (size_t i = steps->count; i > 0; i--) {
        bool same = str_eq(steps->at[i - 1].status, str_from(status_name(status)));
        if (same && steps->at[i - 1].attempt != NULL) {
            return &steps->at[i - 1];
        }
    }
    return NULL;
}

static void add_attempts(
    Steps *steps, const HistoryRow *row, const NotificationAttempt *attempts, size_t count)
{
    for (size_t i = 0; i < count && i < NOTIFICATION_ATTEMPTS_MAX; i++) {
        const NotificationAttempt *attempt = &attempts[i];
        Status status = status_of(attempt);
        int64_t at_us = attempt->finished_us != 0 ? attempt->finished_us : attempt->started_us;
        int64_t known_us = status == STATUS_SENT ? row->at_us[FOLD_SENT] : row->at_us[FOLD_ENDED];
        TimelineStep *step = add(
            steps, str_from(status_name(status)), at_us != 0 ? at_us : known_us, order_of(status));
        step->attempt = attempt;
        step->reason = attempt->reply;
    }
}

// Times that history has a column for; of `sent` the attempt is the better step.
static void add_times(Steps *steps, const HistoryRow *row)
{
    static const struct {
        FoldTime time;
        Status status;
    } reached[] = {
        {FOLD_QUEUED, STATUS_QUEUED}, {FOLD_SCHEDULED, STATUS_SCHEDULED},
        {FOLD_SENT, STATUS_SENT},     {FOLD_DELIVERED, STATUS_DELIVERED},
        {FOLD_OPENED, STATUS_OPENED}, {FOLD_CLICKED, STATUS_CLICKED},
    };
    for (size_t i = 0; i < sizeof reached / sizeof *reached; i++) {
        Status status = reached[i].status;
        int64_t at_us = row->at_us[reached[i].time];
        if (at_us != 0 && (status != STATUS_SENT || find(steps, status) == NULL)) {
            TimelineStep *step = add(steps, str_from(status_name(status)), at_us, order_of(status));
            step->until_us = status == STATUS_SCHEDULED ? row->at_us[FOLD_SCHEDULED_FOR] : 0;
        }
    }
    if (row->at_us[FOLD_RENDERED] != 0) {
        add(steps, STR("rendered"), row->at_us[FOLD_RENDERED], order_of(STATUS_RENDERING));
    }
}

// Only what failed is sent again, so the time of an end that is none any more is a failure's.
static void add_end(Steps *steps, const HistoryRow *row)
{
    int64_t at_us = row->at_us[FOLD_ENDED];
    bool last = notification_is_end(row->status) &&
                (row->at_us[FOLD_SENT] == 0 || at_us >= row->at_us[FOLD_SENT]);
    Status status = last ? row->status : STATUS_FAILED;
    if (at_us != 0 && (status != STATUS_FAILED || find(steps, status) == NULL)) {
        add(steps, str_from(status_name(status)), at_us, order_of(status));
    }
}

// The reason in the row is that of the status in the row.
static void add_reason(Steps *steps, const HistoryRow *row)
{
    for (size_t i = steps->count; i > 0; i--) {
        TimelineStep *step = &steps->at[i - 1];
        if (str_eq(step->status, str_from(status_name(row->status)))) {
            step->reason_code = row->reason_code;
            step->reason = row->reason.len > 0 ? row->reason : step->reason;
            return;
        }
    }
}

static int compare(const void *one, const void *other)
{
    const TimelineStep *a = one;
    const TimelineStep *b = other;
    int by_time = (a->at_us > b->at_us) - (a->at_us < b->at_us);
    int by_order = (a->order > b->order) - (a->order < b->order);
    int64_t numbers[] = {
        a->attempt != NULL ? a->attempt->number : 0, b->attempt != NULL ? b->attempt->number : 0};
    int by_number = (numbers[0] > numbers[1]) - (numbers[0] < numbers[1]);
    return by_time != 0 ? by_time : by_order != 0 ? by_order : by_number;
}

size_t timeline_make(
    const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    TimelineStep ret[TIMELINE_STEPS_MAX])
{
    Steps steps = {ret, 0};
    add_attempts(&steps, row, attempts, attempt_count);
    add_times(&steps, row);
    add_end(&steps, row);
    qsort(ret, steps.count, sizeof *ret, compare);
    add_reason(&steps, row);
    return steps.count;
}

// ---- as JSON ----

static void put_text(Buf *out, const char *name, Str value)
{
    if (value.len > 0) {
        buf_printf(out, ",\"%s\":", name);
        buf_json(out, value);
    }
}

static void put_time(Buf *out, const char *name, int64_t at_us)
{
    if (at_us != 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        put_text(out, name, str_from(text));
    }
}

static void put_step(Buf *out, const TimelineStep *step)
{
    buf_cstr(out, "{\"status\":");
    buf_json(out, step->status);
    put_time(out, "at", step->at_us);
    put_time(out, "until", step->until_us);
    put_text(out, "reason_code", step->reason_code);
    put_text(out, "reason", step->reason);
    if (step->attempt != NULL) {
        buf_printf(out, ",\"attempt\":%" PRId64, step->attempt->number);
        put_text(out, "vendor", step->attempt->vendor);
        put_text(out, "outcome", step->attempt->outcome);
        put_text(out, "code", step->attempt->code);
    }
    buf_char(out, '}');
}

void timeline_print(
    Buf *out, const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    int64_t attempts_before)
{
    TimelineStep steps[TIMELINE_STEPS_MAX];
    size_t count = timeline_make(row, attempts, attempt_count, steps);
    buf_cstr(out, ",\"timeline\":[");
    for (size_t i = 0; i < count; i++) {
        buf_cstr(out, i == 0 ? "" : ",");
        put_step(out, &steps[i]);
    }
    buf_char(out, ']');
    if (attempts_before > 0) {
        buf_printf(out, ",\"attempts_left_out\":%" PRId64, attempts_before);
    }
}
