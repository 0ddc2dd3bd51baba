// SPDX-License-Identifier: Apache-2.0
// One LMTP connection as a state machine over bytes (RFC 2033, with RFC 5321's syntax): LHLO, MAIL,
// RCPT, DATA, RSET, NOOP, VRFY, QUIT. Pure: fed with whatever the socket gave, in pieces of any
// size; it says what is to be decided and writes the replies into `out`. Law: foreign bytes; every
// length is bounded, only CR LF . CR LF ends a mail, and each accepted recipient gets one reply.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"

enum {
    LMTP_LINE_MAX = 4096, // of a command, with its CR LF
    LMTP_RECIPIENTS_MAX = 50,
    LMTP_ADDRESS_MAX = 320,
    LMTP_OUT_MAX = 64 * 1024,
    LMTP_ERRORS_MAX = 20, // commands refused as syntax or out of order; then 421
};

typedef enum LmtpStep {
    LMTP_MORE,      // all input is consumed
    LMTP_FLUSH,     // `out` is half full: send and clear it, then go on
    LMTP_RECIPIENT, // judge `address`, then lmtp_recipient()
    LMTP_MAIL,      // a whole mail; then lmtp_reply() for each recipient, in order
    LMTP_END,       // send `out`, then close
} LmtpStep;

typedef enum LmtpState {
    LMTP_GREETED, // LHLO is to come
    LMTP_READY,
    LMTP_ENVELOPE, // MAIL was taken
    LMTP_DATA,
    LMTP_REPLYING,
    LMTP_ENDED,
} LmtpState;

// Where the end mark may begin.
typedef enum LmtpDot {
    LMTP_DOT_TEXT,
    LMTP_DOT_CR,    // a CR
    LMTP_DOT_START, // the start of a line
    LMTP_DOT_DOT,   // a dot at the start of a line
    LMTP_DOT_DOT_CR // that, and a CR
} LmtpDot;

typedef struct LmtpLimits {
    size_t mail_max; // beyond it 552, and nothing is kept
    size_t kept_max; // of a mail only so many bytes are kept, from its beginning
} LmtpLimits;

typedef struct LmtpSession {
    LmtpLimits limits;
    const char *host; // in the greeting
    LmtpState state;
    Buf out;      // replies to be sent; the caller clears it
    Arena *arena; // of the mail in hand: what the caller needs until its replies may live here too
    Str address;  // LMTP_RECIPIENT: lives in `arena`
    Str recipients[LMTP_RECIPIENTS_MAX]; // accepted ones
    void *users[LMTP_RECIPIENTS_MAX];    // what the caller found of each
    size_t recipient_count;
    size_t replied;
    Buf mail;      // as much of it as is kept, dots undone
    uint64_t size; // of the whole mail
    LmtpDot dot;
    int errors;
    size_t line_len;
    bool line_too_long;
    char line[LMTP_LINE_MAX];
} LmtpSession;

// `out` holds the greeting. `host` is borrowed.
void lmtp_init(LmtpSession *session, const char *host, const LmtpLimits *limits);
void lmtp_done(LmtpSession *session);

// Consumes from *input up to the next decision.
LmtpStep lmtp_feed(LmtpSession *session, Str *input);
// refusal NULL: accepted, and `user` is kept; else the whole reply without CR LF ("550 5.1.1 ...").
void lmtp_recipient(LmtpSession *session, const char *refusal, void *user);
// To the next recipient of the mail. After the last one lmtp_feed goes on.
void lmtp_reply(LmtpSession *session, const char *reply);
// Time is up, or the service stops: 421, and the session is at its end.
void lmtp_end(LmtpSession *session, const char *reply);
