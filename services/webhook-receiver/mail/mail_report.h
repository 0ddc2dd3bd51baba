// SPDX-License-Identifier: Apache-2.0
// What the parsing process found in a mail (mail_parse.h writes it), read from its JSON. Law: that
// process may have been taken over by the mail that it read, so its bytes are foreign too. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

typedef struct ReportedRecipient {
    Str original, final;    // "rfc822;ada@example.com"
    Str action;             // "failed"
    Str status, diagnostic; // "5.1.1 (unknown)", "smtp; 550 5.1.1 ..."
} ReportedRecipient;

typedef struct MailReport {
    bool is_delivery; // it has a part message/delivery-status
    Str envelope_id;
    ReportedRecipient *recipients;
    size_t recipient_count;
    bool is_feedback; // it has a part message/feedback-report
    Str feedback_type, feedback_from, feedback_envelope_id;
    Str *feedback_recipients; // Original-Rcpt-To, Removal-Recipient
    size_t feedback_recipient_count;
    Str message_id, return_path, list_unsubscribe, to; // headers of the mail that came back
} MailReport;

// Everything lives in `arena`; what is left out is empty. ERROR_PERMANENT: it is no report.
bool mail_report_read(Str json, Arena *arena, MailReport *ret, Error *err);
