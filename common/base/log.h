// SPDX-License-Identifier: Apache-2.0
// Log: one JSON line per event (logfmt on a terminal), on standard error or a given descriptor.
// Keys are fixed words, values are typed. error: an operator must act. warn: survived, and the text
// says so. info: life-cycle. debug: the rest. Only services and the bus, db and http layers' state
// changes log; recipient data only masked (mask_address).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/base/str.h"

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } LogLevel;

typedef enum LogType {
    LOG_END = 0,
    LOG_TYPE_STR,
    LOG_TYPE_INT,
    LOG_TYPE_URLS,
    LOG_TYPE_ERROR
} LogType;

typedef struct LogField {
    LogType type;
    const char
        *key; // "tenant", "notification", "trace", "count", "stream", "sequence", "error" ...
    Str text;
    int64_t number;
    const Error *error;
} LogField;

LogField log_str(const char *key, Str value);
LogField log_text(const char *key, const char *value);
LogField log_int(const char *key, int64_t value);
LogField log_urls(const char *key, const char *urls); // without the user and the password in them
// key "error": "<kind>: <text>"; in a debug build also key "at": "<file>:<line>"
LogField log_error(const Error *err);

void log_setup(const char *service, LogLevel level, bool json);
void log_level_set(LogLevel level);
void log_output_set(int fd);    // standard error unless said otherwise
bool log_wants(LogLevel level); // a line of this level is written
void log_line(
    LogLevel level, const char *event, const LogField *fields); // ends with a LOG_END field

// LOG(LOG_WARN, "smtp connection lost", log_text("host", host), log_error(&err));
#define LOG(level, event, ...)                                                                     \
    log_line((level), (event), (const LogField[]){__VA_ARGS__, {.type = LOG_END}})
#define LOG_PLAIN(level, event) log_line((level), (event), (const LogField[]){{.type = LOG_END}})

// Lines about single notifications: accepted, attempted, failed. Of each level at most `per_s` in a
// second, so that a campaign does not fill the disk; the next second's first tick says how many
// were left out. 0: none. Ask before the line is put together: if
// (log_takes_notification(LOG_INFO)).
void log_notifications_limit(int64_t per_s);
bool log_takes_notification(LogLevel level);
void log_notifications_tick(void); // from the service's timer

enum { LOG_MASKED_SIZE = 320 }; // of an address

// "ali***@example.com"; the address's first three characters (fewer when the local part is shorter)
// and the domain.
void mask_address(Str address, char *out, size_t size);
// Replaces everything that looks like an e-mail address or a phone number in `text` by its mask
// (what a number is: mask_number.h); for texts of vendors.
void mask_addresses(Str text, char *out, size_t size);
// Replaces `address` in `text` by "***" wherever it stands, in either case: whole, a phone number
// with or without its '+' and whatever stands between its digits, a part of it that tells who it is
// (a token in a URL), and what a cut of the text has left of these at its end. For an address that
// is no e-mail address.
void mask_known(Str text, Str address, char *out, size_t size);
// "nats://user:password@host,nats://other" -> "nats://***@host,nats://other", appended to `out`.
// Any other text stays as it is.
void mask_urls(Str urls, Buf *out);
