// SPDX-License-Identifier: Apache-2.0
// Which streams hold the log: what the archiver stores of each as segments. Every stream of the
// topology has a row here (log_streams_test.c), so a new one is decided, not forgotten.
#pragma once

#include "common/base/str.h"

typedef enum LogKeeping {
    KEPT_NOT,      // made of other streams, or in clear
    KEPT_BY_CLASS, // events of notifications: each in its class's segments
    KEPT_LONGEST,  // class record, whatever the event
    KEPT_CONTENT,  // what was sent, for LogKept.content_us
    KEPT_CALLBACK, // what vendors said, in their words, for LogKept.callbacks_us
} LogKeeping;

typedef struct LogStream {
    const char *stream;
    LogKeeping keeping;
    // Messages go from within it rightly (superseded, deleted by command): a jump of its sequence
    // is no loss.
    bool thins_out;
    const char *why;
} LogStream;

enum { LOG_STREAMS_MAX = 16 }; // kept ones

// The rows are static. All of them, those that are not kept too.
const LogStream *log_streams(size_t *ret_count);
const LogStream *log_stream(const char *stream); // NULL: unknown

// How long segments are kept that end by age and not by class; 0: none is made.
typedef struct LogKept {
    int64_t content_us, callbacks_us;
} LogKept;
bool log_stream_is_stored(const LogStream *stream, const LogKept *kept);
// 0: by class, or not stored.
int64_t log_stream_kept_us(const LogStream *stream, const LogKept *kept);
const char *log_stream_folder(const LogStream *stream); // of its objects: "log", "rendered" ...

// The class's code in a notification's id: 'R', 'S' or 'B'. Another character, or no id: 'R'.
char log_class(Str notification_id);
const char *log_class_name(char code); // "record", "standard", "brief"
