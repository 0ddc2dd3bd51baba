// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"

enum {
    LOG_VALUE_MAX = 1024, // a longer value is cut
    LOG_LINE_MAX =
        4000, // below PIPE_BUF, so that lines of several processes do not mix in one pipe
    LOG_WORK_MAX = LOG_LINE_MAX + 8 * LOG_VALUE_MAX,
    MASK_SIZE = 320,
};

static struct {
    char service[64];
    LogLevel level;
    bool json;
    int fd;
} setup = {"stentor", LOG_INFO, true, STDERR_FILENO};

static struct {
    int64_t per_s; // of each level
    int64_t second;
    int64_t written[LOG_ERROR + 1];
    int64_t left_out;
} sampling = {.per_s = 0};

LogField log_str(const char *key, Str value)
{
    return (LogField){.type = LOG_TYPE_STR, .key = key, .text = value};
}

LogField log_text(const char *key, const char *value)
{
    return log_str(key, str_from(value));
}

LogField log_int(const char *key, int64_t value)
{
    return (LogField){.type = LOG_TYPE_INT, .key = key, .number = value};
}

LogField log_urls(const char *key, const char *urls)
{
    return (LogField){.type = LOG_TYPE_URLS, .key = key, .text = str_from(urls)};
}

LogField log_error(const Error *err)
{
    return (LogField){.type = LOG_TYPE_ERROR, .key = "error", .error = err};
}

void log_setup(const char *service, LogLevel level, bool json)
{
    snprintf(setup.service, sizeof setup.service, "%s", service);
    setup.level = level;
    setup.json = json;
}

void log_level_set(LogLevel level)
{
    setup.level = level;
}

void log_output_set(int fd)
{
    setup.fd = fd;
}

static const char *level_name(LogLevel level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    return "";
}

// At most `max` bytes, not ending in half a UTF-8 sequence.
static Str cut(Str s, size_t max)
{
    if (s.len <= max) {
        return s;
    }
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0u) == 0x80u) {
        max--;
    }
    return str_slice(s, 0, max);
}

static bool needs_quotes(Str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\') {
            return true;
        }
    }
    return value.len == 0;
}

static void put_key(Buf *line, const char *key)
{
    if (setup.json) {
        buf_printf(line, "%s\"%s\":", line->len == 0 ? "{" : ",", key);
    } else {
        buf_printf(line, "%s%s=", line->len == 0 ? "" : " ", key);
    }
}

static void put_text(Buf *line, const char *key, Str value)
{
    put_key(line, key);
    value = cut(value, LOG_VALUE_MAX);
    if (setup.json || needs_quotes(value)) {
        buf_json(line, value);
    } else {
        buf_str(line, value);
    }
}

static void put_urls(Buf *line, const char *key, Str urls)
{
    Buf masked;
    buf_init(&masked, LOG_WORK_MAX);
    mask_urls(urls, &masked);
    put_text(line, key, buf_view(&masked));
    buf_done(&masked);
}

static void put_error(Buf *line, const char *key, const Error *err)
{
    char text[MASK_SIZE];
    (void)snprintf(text, sizeof text, "%s: %s", error_kind_name(err->kind), err->text);
    put_text(line, key, str_from(text));
    error_at(err, text, sizeof text);
    if (text[0] != '\0') {
        put_text(line, "at", str_from(text));
    }
}

static void put_field(Buf *line, const LogField *field)
{
    switch (field->type) {
    case LOG_END:
        return;
    case LOG_TYPE_STR:
        put_text(line, field->key, field->text);
        return;
    case LOG_TYPE_INT:
        put_key(line, field->key);
        buf_printf(line, "%lld", (long long)field->number);
        return;
    case LOG_TYPE_URLS:
        put_urls(line, field->key, field->text);
        return;
    case LOG_TYPE_ERROR:
        put_error(line, field->key, field->error);
        return;
    }
}

static void put_head(Buf *line, LogLevel level, const char *event)
{
    char now[CLOCK_RFC3339_SIZE];
    clock_format(clock_now_us(), now);
    put_text(line, "time", str_from(now));
    put_text(line, "level", str_from(level_name(level)));
    put_text(line, "service", str_from(setup.service));
    put_text(line, "event", str_from(event));
}

static void put_fields(Buf *line, const LogField *fields)
{
    for (const LogField *field = fields; field->type != LOG_END; field++) {
        size_t before = line->len;
        put_field(line, field);
        if (line->full || line->len > LOG_LINE_MAX) {
            // The line stays whole and parsable; the mark says that fields are missing.
            line->len = before;
            line->full = false;
            put_key(line, "cut");
            buf_cstr(line, "true");
            return;
        }
    }
}

bool log_wants(LogLevel level)
{
    return level >= setup.level;
}

void log_line(LogLevel level, const char *event, const LogField *fields)
{
    if (!log_wants(level)) {
        return;
    }
    Buf line;
    buf_init(&line, LOG_WORK_MAX);
    put_head(&line, level, event);
    put_fields(&line, fields);
    buf_cstr(&line, setup.json ? "}\n" : "\n");
    // A log that cannot be written must not stop the service.
    ssize_t written = write(setup.fd, line.ptr, line.len);
    (void)written;
    buf_done(&line);
}

// ---- notifications ----

void log_notifications_limit(int64_t per_s)
{
    sampling.per_s = per_s;
}

void log_notifications_tick(void)
{
    int64_t second = clock_mono_us() / 1000000;
    if (second == sampling.second) {
        return;
    }
    int64_t left_out = sampling.left_out;
    sampling.second = second;
    sampling.left_out = 0;
    memset(sampling.written, 0, sizeof sampling.written);
    if (left_out > 0) {
        LOG(LOG_INFO,
            "lines about notifications were left out; STENTOR_LOG_NOTIFICATIONS limits them",
            log_int("count", left_out), log_int("limit_per_s", sampling.per_s));
    }
}

bool log_takes_notification(LogLevel level)
{
    if (sampling.per_s == 0 || !log_wants(level)) {
        return false;
    }
    log_notifications_tick();
    if (sampling.written[level] >= sampling.per_s) {
        sampling.left_out++;
        return false;
    }
    sampling.written[level]++;
    return true;
}
