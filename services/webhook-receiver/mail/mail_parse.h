// SPDX-License-Identifier: Apache-2.0
// Reading a mail's structure with gmime, in a process of its own (mail_reader.h starts it): the
// mail on standard input, a report on standard output, as JSON. It says what stands in the mail and
// judges nothing: mail_events.h does. Law: foreign bytes under a foreign parser; the process has no
// key, no environment, no file, no network, and limits of memory and time (mail_parse_limits.h).
#pragma once

#include "common/base/buf.h"

// The hidden argument that makes the program this process.
#define MAIL_PARSE_ARGUMENT "parse-mail"

enum {
    MAIL_BYTES_MAX = 1024 * 1024,
    MAIL_REPORT_MAX = 256 * 1024, // of the JSON
    MAIL_RECIPIENTS_MAX = 100,
    MAIL_ADDRESSES_MAX = 20, // Original-Rcpt-To of a feedback report
    MAIL_VALUE_MAX = 1024,   // of one field; what is longer is cut
    MAIL_DEPTH_MAX = 20,
    MAIL_PARTS_MAX = 200,
};

// The whole process; returns its exit status.
int mail_parse_main(void);

// {"returned": {"message_id", "return_path", "list_unsubscribe", "to"},
//  "delivery": {"envelope_id", "recipients": [{"original", "final", "action", "status",
//               "diagnostic"}]},
//  "feedback": {"type", "mail_from", "envelope_id", "rcpt_to": [...]}}
// A part that the mail does not have is left out. false: the report is larger than `ret` takes.
bool mail_parse(Str mail, Buf *ret);
