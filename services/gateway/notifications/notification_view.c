// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/notification_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"

#define MICROS_IN_ONE INT64_C(1000000)

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

bool notification_is_end(Status status)
{
    return status == STATUS_SUPPRESSED || status == STATUS_SUPERSEDED || status == STATUS_FAILED ||
           status == STATUS_BOUNCED || status == STATUS_COMPLAINED;
}

static bool is_under_way(Status status)
{
    return status == STATUS_QUEUED || status == STATUS_RENDERING || status == STATUS_SENDING;
}

// The reason of the failure names hosts, and is the operator's.
static void put_wait(Buf *out, const NotificationWait *wait)
{
    char since[CLOCK_RFC3339_SIZE];
    clock_format(wait->since_us, since);
    buf_cstr(out, ",\"waiting\":{\"for\":");
    buf_json(out, str_from(wait->vendor));
    put_text(out, "since", str_from(since));
    buf_char(out, '}');
}

// "0.0075": an amount is a text, so that no reader makes a binary fraction of it.
static void put_amount(Buf *out, int64_t micros)
{
    char text[32];
    int used = snprintf(
        text, sizeof text, "%" PRId64 ".%06" PRId64, micros / MICROS_IN_ONE,
        micros % MICROS_IN_ONE);
    while (text[used - 1] == '0') { // it has a point
        used--;
    }
    used -= text[used - 1] == '.';
    put_text(out, "cost", str_of(text, (size_t)used));
}

static void put_words(Buf *out, const NotificationAttempt *attempt)
{
    put_text(out, "credential", attempt->credential);
    put_text(out, "route", attempt->route);
    put_text(out, "vendor_message_id", attempt->vendor_message_id);
    put_text(out, "reply", attempt->reply);
    if (attempt->retry_after_ms > 0) {
        buf_printf(out, ",\"retry_after_ms\":%" PRId64, attempt->retry_after_ms);
    }
    buf_printf(out, ",\"was_unknown\":%s", attempt->was_unknown ? "true" : "false");
}

void notification_print_attempt(Buf *out, const NotificationAttempt *attempt, bool whole)
{
    buf_printf(out, "{\"number\":%" PRId64, attempt->number);
    put_text(out, "vendor", attempt->vendor);
    put_text(out, "outcome", attempt->outcome);
    put_text(out, "code", attempt->code);
    put_text(out, "enhanced_code", attempt->enhanced_code);
    put_time(out, "started_at", attempt->started_us);
    put_time(out, "finished_at", attempt->finished_us);
    if (attempt->segments > 0) {
        buf_printf(out, ",\"segments\":%" PRId64, attempt->segments);
    }
    if (attempt->cost_micros >= 0 && attempt->currency.len > 0) {
        put_amount(out, attempt->cost_micros);
        put_text(out, "currency", attempt->currency);
        buf_printf(out, ",\"cost_estimated\":%s", attempt->estimated ? "true" : "false");
    }
    if (whole) {
        put_words(out, attempt);
    }
    buf_char(out, '}');
}

static void put_attempts(Buf *out, const NotificationAttempt *attempts, size_t count, bool whole)
{
    for (size_t i = 0; i < count; i++) {
        buf_cstr(out, i == 0 ? ",\"attempts\":[" : ",");
        notification_print_attempt(out, &attempts[i], whole);
    }
    if (count > 0) {
        buf_char(out, ']');
    } else if (whole) {
        buf_cstr(out, ",\"attempts\":[]");
    }
}

void notification_print_open(
    Buf *out, const HistoryRow *row, const NotificationAttempt *attempts, size_t attempt_count,
    const NotificationWait *wait, bool whole)
{
    buf_cstr(out, "{\"id\":");
    buf_json(out, row->id);
    put_text(out, "status", str_from(status_name(row->status)));
    put_text(out, "reason_code", row->reason_code);
    put_text(out, "reason", row->reason);
    if (wait != NULL && wait->since_us > 0 && is_under_way(row->status)) {
        put_wait(out, wait);
    }
    for (size_t i = 0; i < NOTIFICATION_TEXTS; i++) {
        FoldText field = notification_texts[i];
        put_text(out, fold_text_column(field), row->text[field]);
    }
    put_time(out, "created_at", row->created_at_us);
    for (size_t i = 0; i < NOTIFICATION_TIMES; i++) {
        FoldTime field = notification_times[i];
        if (field != FOLD_ENDED || notification_is_end(row->status)) {
            put_time(out, fold_time_column(field), row->at_us[field]);
        }
    }
    put_attempts(out, attempts, attempt_count, whole);
}
