// SPDX-License-Identifier: Apache-2.0
#include "common/eventlog/log_streams.h"

// clang-format off
static const LogStream rows[] = {
    {"REQUEST_CRITICAL",  KEPT_BY_CLASS, false, "history is made of them"},
    {"REQUEST_HIGH",      KEPT_BY_CLASS, false, "history is made of them"},
    {"REQUEST_NORMAL",    KEPT_BY_CLASS, false, "history is made of them"},
    {"REQUEST_LOW",       KEPT_BY_CLASS, false, "history is made of them"},
    {"STATUS",            KEPT_BY_CLASS, false, "history is made of them"},
    {"PEOPLE",            KEPT_LONGEST,  false, "recipients and their consents are made of them"},
    {"CONFIG",            KEPT_LONGEST,  true,  "what was configured when"},
    {"DEAD",              KEPT_BY_CLASS, true,  "what could not be processed, until it is sent again"},
    {"AUDIT",             KEPT_LONGEST,  false, "what was done with personal data"},
    {"RENDERED_CRITICAL", KEPT_CONTENT,  false, "what was sent, for 90 days"},
    {"RENDERED_HIGH",     KEPT_CONTENT,  false, "what was sent, for 90 days"},
    {"RENDERED_NORMAL",   KEPT_CONTENT,  false, "what was sent, for 90 days"},
    {"RENDERED_LOW",      KEPT_CONTENT,  false, "what was sent, for 90 days"},
    {"DEFERRED",          KEPT_NOT,      false, "work that waits; its outcome is a status"},
    {"INBOUND",           KEPT_CALLBACK, false, "vendors' callbacks in their words; what they say is a status"},
    {"SETTLE",            KEPT_NOT,      false, "what callbacks say of unknown outcomes"},
    {"HOOK",              KEPT_NOT,      false, "status events on their way to tenants' endpoints"},
    {"EVENTS",            KEPT_NOT,      false, "applications' events: their keys last two weeks"},
    {"FEED",              KEPT_NOT,      false, "in-app inboxes: the stream itself has them as long as they last"},
    {"REPLIES",           KEPT_NOT,      false, "what recipients wrote: the callbacks hold it"},
    {"IN_HAND",           KEPT_NOT,      true,  "what a process has in hand now"},
};
// clang-format on

enum { PREFIX = 4, CLASS_AT = 10 }; // "ntf_", then 10 characters of time

const LogStream *log_streams(size_t *ret_count)
{
    *ret_count = sizeof rows / sizeof rows[0];
    return rows;
}

const LogStream *log_stream(const char *stream)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (str_eq(str_from(rows[i].stream), str_from(stream))) {
            return &rows[i];
        }
    }
    return NULL;
}

int64_t log_stream_kept_us(const LogStream *stream, const LogKept *kept)
{
    switch (stream->keeping) {
    case KEPT_CONTENT:
        return kept->content_us;
    case KEPT_CALLBACK:
        return kept->callbacks_us;
    case KEPT_NOT:
    case KEPT_BY_CLASS:
    case KEPT_LONGEST:
        break;
    }
    return 0;
}

bool log_stream_is_stored(const LogStream *stream, const LogKept *kept)
{
    bool by_class = stream->keeping == KEPT_BY_CLASS || stream->keeping == KEPT_LONGEST;
    return by_class || log_stream_kept_us(stream, kept) > 0;
}

const char *log_stream_folder(const LogStream *stream)
{
    switch (stream->keeping) {
    case KEPT_CONTENT:
        return "rendered";
    case KEPT_CALLBACK:
        return "webhooks";
    case KEPT_NOT:
    case KEPT_BY_CLASS:
    case KEPT_LONGEST:
        break;
    }
    return "log";
}

char log_class(Str notification_id)
{
    if (notification_id.len <= PREFIX + CLASS_AT) {
        return 'R';
    }
    char code = notification_id.ptr[PREFIX + CLASS_AT];
    return code == 'S' || code == 'B' ? code : 'R';
}

const char *log_class_name(char code)
{
    switch (code) {
    case 'S':
        return "standard";
    case 'B':
        return "brief";
    default:
        return "record";
    }
}
