// SPDX-License-Identifier: Apache-2.0
// The service's side of reading mail: a process for each mail (mail_parse.h), which gets the mail,
// writes a report and ends. One that is late is killed. Law: whatever a mail does to its process,
// this one goes on, and no mail sees another one's process.
#pragma once

#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct MailReader MailReader;

typedef struct MailReaderOptions {
    uv_loop_t *loop;
    const char *const *command; // NULL at the end; NULL: this program with MAIL_PARSE_ARGUMENT
    int time_ms;                // 0: MAIL_READER_TIME_MS
} MailReaderOptions;

enum { MAIL_READER_TIME_MS = 10000 };

// report: valid during the call. PERMANENT: the mail ended its process, or was too slow, or took
// too much of the processor's time. TRANSIENT: no process could be started. CANCELLED: stopped.
typedef void (*MailRead)(void *ctx, Str report, const Error *err);

MailReader *mail_reader_new(const MailReaderOptions *options);
// Exactly one on_read, from the loop. The mail lives until then. A process that a signal ended is
// tried once more: it may have been killed for another's sake.
void mail_reader_read(MailReader *reader, Str mail, MailRead on_read, void *ctx);
// Kills what runs; on_freed, from the loop, after the last on_read.
void mail_reader_free(MailReader *reader, void (*on_freed)(void *ctx), void *ctx);
