// SPDX-License-Identifier: Apache-2.0
// An SMTP server's replies, from their bytes (RFC 5321 4.2, RFC 2034): multi-line replies, enhanced
// status codes, EHLO's capabilities. Pure: fed with whatever the socket gave, in pieces of any
// size. Law: foreign bytes; every length is bounded, and text handed on is printable UTF-8 in one
// line.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/model/rules/ladder.h"

enum { SMTP_LINE_MAX = 2048, SMTP_LINES_MAX = 64, SMTP_TEXT_MAX = 4096, SMTP_ENHANCED_SIZE = 12 };

typedef struct SmtpReply {
    int code;                          // 200..599
    char enhanced[SMTP_ENHANCED_SIZE]; // "5.1.1" or ""
    size_t text_len;
    char text[SMTP_TEXT_MAX]; // the lines' texts separated by LF; cut at its maximum
} SmtpReply;

typedef struct SmtpReplyParser {
    SmtpReply reply;
    int lines;
    size_t line_len;
    char line[SMTP_LINE_MAX];
} SmtpReplyParser;

typedef enum SmtpFeed { SMTP_FEED_MORE, SMTP_FEED_REPLY, SMTP_FEED_BAD } SmtpFeed;

void smtp_reply_init(SmtpReplyParser *parser);
// Consumes from *input up to the end of one reply. REPLY: parser->reply is complete until the next
// call. MORE: all was consumed. BAD: this is not SMTP (err TRANSIENT says why); the connection is
// unusable.
SmtpFeed smtp_reply_feed(SmtpReplyParser *parser, Str *input, Error *err);
Str smtp_reply_text(const SmtpReply *reply);
// The text in one line, addresses masked, bytes that are not UTF-8 replaced; for the ledger, events
// and logs.
void smtp_reply_clean(const SmtpReply *reply, char *out, size_t size);

// reply_classify() with what is special to SMTP sessions: a sequence or authentication error is not
// about the mail (RETRY), and 5.6.7 (the address needs SMTPUTF8) is about the address.
ReplyClass smtp_classify(int code, Str enhanced);

typedef struct SmtpCaps {
    bool pipelining, starttls, smtputf8, eightbitmime, auth_plain, auth_login, dsn;
    uint64_t size_max; // 0: not announced
} SmtpCaps;

// From the reply to EHLO.
SmtpCaps smtp_caps_parse(const SmtpReply *reply);
