// SPDX-License-Identifier: Apache-2.0
// The protocol of one SMTP connection, without the connection: replies in, commands out, mails
// taken and answered. Pipelined (RFC 2920): MAIL, RCPT and DATA go as one group, and the next
// mail's group goes right behind the final dot of the one before, so a mail costs one write and one
// read. Law: a mail is at any moment either `envelope` (surely not sent) or `sending` (its final
// dot is in `out` or gone).
//
// Phases (smtp_states.c has the table). From each of them a fault leads to FAILED, which is an end.
//
//   HANDSHAKE of smtps
//       v
//   GREETING --> EHLO --+--> READY ----------------------.
//                 ^     +--> HELO --> READY -------------+
//                 |     +--> AUTH --> READY -------------+--> QUIT
//                 |     '--> STARTTLS --+--> AUTH, READY-'
//                 '----- HANDSHAKE <----'    (refused, and not needed)
//
// Facts that may hold in several phases: `encrypted`, `dot_in_out` (of the
// bytes in `out`), `mail_open` (of the server), `refusal.set` (of the envelope).
#pragma once

#include "common/base/buf.h"
#include "services/dispatcher/vendor/smtp/smtp_options.h"
#include "services/dispatcher/vendor/smtp/smtp_reply.h"
#include "services/dispatcher/vendor/vendor.h"

typedef enum SmtpPhase {
    SMTP_GREETING,
    SMTP_EHLO,
    SMTP_HELO,
    SMTP_STARTTLS,
    SMTP_HANDSHAKE, // TLS; the connection's work
    SMTP_AUTH,
    SMTP_READY,
    SMTP_QUIT,
    SMTP_FAILED,
    SMTP_PHASE_COUNT,
} SmtpPhase;

// The only writer of a phase. false: not allowed, nothing changed (common/base/states/states.h).
bool smtp_phase_move(SmtpPhase *phase, SmtpPhase next, const char *host);

typedef enum SmtpExpect {
    EXPECT_SETUP, // the reply to the phase's own command
    EXPECT_RSET,
    EXPECT_MAIL,
    EXPECT_RCPT,
    EXPECT_DATA,
    EXPECT_FINAL,  // after the dot of `sending`
    EXPECT_NOTHING // after a dot that ended a message without recipients
} SmtpExpect;

enum { SMTP_EXPECT_MAX = 8 + MAIL_COPIES_MAX, SMTP_OUT_MAX = 112 * 1024 * 1024 };

typedef struct SmtpHooks {
    Mail *(*next)(void *ctx);                       // NULL: there is none now
    bool (*may_write)(void *ctx, const Mail *mail); // asked just before its message is written
    void (*on_answer)(void *ctx, Mail *mail, const SendResult *result);
} SmtpHooks;

typedef struct SmtpRefusal {
    bool set;
    int code;
    char enhanced[SMTP_ENHANCED_SIZE];
    char text[512];
} SmtpRefusal;

// Of a mail's copies.
typedef struct SmtpCopies {
    size_t refused;
    char first[128]; // what the server said to the first of them
} SmtpCopies;

typedef struct SmtpSession {
    const SmtpOptions *options;
    const SmtpHooks *hooks;
    void *ctx;
    SmtpPhase phase;
    SmtpCaps caps;
    bool encrypted;
    int auth_step;
    Buf out;           // to be written; the connection empties it
    bool dot_in_out;   // `out` holds the final dot of `sending` ...
    size_t dot_offset; // ... at this offset
    Mail *sending;
    Mail *envelope;
    SmtpRefusal refusal;    // of `envelope`
    size_t rcpt_answers;    // of `envelope`
    SmtpCopies copies;      // of `envelope` ...
    SmtpCopies sent_copies; // ... and of `sending`
    bool mail_open;         // the server holds a MAIL that no DATA followed: RSET first
    uint32_t mails;
    unsigned expected;
    SmtpExpect expect[SMTP_EXPECT_MAX];
} SmtpSession;

void smtp_session_init(
    SmtpSession *session, const SmtpOptions *options, const SmtpHooks *hooks, void *ctx);
void smtp_session_done(SmtpSession *session);

// false: the connection is unusable; err has the reason (TRANSIENT, or CONFIG when an operator must
// act).
bool smtp_session_reply(SmtpSession *session, const SmtpReply *reply, Error *err);
// The TLS handshake is complete: before the greeting (smtps) or after STARTTLS.
void smtp_session_encrypted(SmtpSession *session);
// Takes a mail if it can; called when one may be waiting.
void smtp_session_pull(SmtpSession *session);
void smtp_session_quit(SmtpSession *session);
bool smtp_session_idle(const SmtpSession *session); // ready, and without a mail
// The command whose answer is pending, and the longest wait for it.
unsigned smtp_session_patience_ms(const SmtpSession *session, const char **ret_what);
