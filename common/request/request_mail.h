// SPDX-License-Identifier: Apache-2.0
// What one e-mail has beside its template, as its caller asks: copies, where answers go, the list
// that it belongs to. Pure.
#pragma once

#include "common/request/request.h"

enum { MAIL_RECIPIENTS_MAX = 50, MAIL_LIST_ID_MAX = 255 }; // the first: `to` counts too

typedef struct MailAddress {
    Str address, name;
} MailAddress;

enum { MAIL_ATTACHMENTS_MAX = 20, MAIL_ATTACHMENT_ID_MAX = 1200, MAIL_CONTENT_ID_MAX = 100 };

typedef struct MailAttachment {
    Str id;         // as it came back from the upload
    Str content_id; // of an image that the HTML shows by cid:...; empty: an attachment
    bool shown;     // "inline"
    struct Stentor__V1__Attachment *file; // what the id says; NULL: not read yet
} MailAttachment;

// Lives in the request's arena.
typedef struct RequestMail {
    MailAddress *cc, *bcc;
    size_t cc_count, bcc_count;
    Str reply_to; // empty: the tenant's
    Str list_id;  // empty: by category
    MailAttachment *attachments;
    size_t attachment_count;
} RequestMail;

// Checks all values and normalises the addresses. `to`: the request's own, normalised; empty: a
// recipient's. Only an e-mail has these fields.
bool request_mail_check(RequestMail *mail, Channel channel, Str to, Arena *arena, FieldError *err);
// Copies get the very mail of the recipient, its link to unsubscribe included, and have given no
// consent of their own: what may be opted out of is not copied. For after the category is known.
bool request_mail_may_copy(const RequestMail *mail, Category category, FieldError *err);
