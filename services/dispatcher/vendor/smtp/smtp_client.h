// SPDX-License-Identifier: Apache-2.0
// One SMTP connection on the loop: name look-up, TCP, TLS, reading, writing, time-outs. What is
// said is the session's business (smtp_session.h); who gets the mails is the pool's. Law: a client
// ends by itself: every way to its end leads through on_closed, from the loop, after which it is
// gone.
//
//   new --> looking up --> connecting --> setting up --> ready --> quitting
//    |          |              |              |            |          |
//    '----------+--------------+------+-------+------------+----------'
//                                     v
//                                  closing --> closed (and freed)
//
// setting up: connected; greeting, TLS and AUTH. quitting: it takes no more mails, ends what it has
// begun and says QUIT. What the protocol says in these is the session's phase. A move that is
// refused closes the connection: its mails are given back, or unknown, as when a connection is
// lost.
#pragma once

#include <uv.h>

#include "services/dispatcher/vendor/smtp/smtp_session.h"
#include "services/dispatcher/vendor/smtp/smtp_tls.h"

typedef struct SmtpClient SmtpClient;

typedef enum SmtpClientState {
    SMTP_CLIENT_NEW,
    SMTP_CLIENT_LOOKING_UP,
    SMTP_CLIENT_CONNECTING,
    SMTP_CLIENT_SETTING_UP,
    SMTP_CLIENT_READY,
    SMTP_CLIENT_QUITTING,
    SMTP_CLIENT_CLOSING,
    SMTP_CLIENT_CLOSED,
    SMTP_CLIENT_STATE_COUNT,
} SmtpClientState;

// The only writer of a client's state. false: refused, nothing changed
// (common/base/states/states.h).
bool smtp_client_move(SmtpClientState *state, SmtpClientState next, const char *host);

typedef struct SmtpClientHooks {
    SmtpHooks session;                      // next, on_answer; ctx is the pool's
    void (*on_ready)(void *ctx);            // greeted, encrypted and authenticated
    void (*on_lost)(void *ctx, Mail *mail); // its final dot may have arrived, the answer did not
    void (*on_back)(void *ctx, Mail *mail); // surely not sent
    // err CANCELLED: closed in good order. useful: it carried a mail, or ended while it had none.
    // Freed after the call.
    void (*on_closed)(void *ctx, SmtpClient *client, bool useful, const Error *err);
} SmtpClientHooks;

typedef struct SmtpClientContext {
    uv_loop_t *loop;
    const SmtpOptions *options;
    SmtpTlsContext *tls;
    const SmtpClientHooks *hooks;
    void *ctx;
    unsigned turn; // which of the host's addresses: the turn-th, round and round
} SmtpClientContext;

SmtpClient *smtp_client_new(const SmtpClientContext *context); // begins to connect
bool smtp_client_idle(const SmtpClient *client);
bool smtp_client_ready(const SmtpClient *client);
void smtp_client_wake(SmtpClient *client); // there may be a mail
void smtp_client_quit(SmtpClient *client); // when idle QUIT, else after what it has begun
void smtp_client_abort(SmtpClient *client);
void smtp_client_tick(SmtpClient *client, uint64_t now_ms); // time-outs; a few times a second
