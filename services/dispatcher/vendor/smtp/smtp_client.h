// SPDX-License-Identifier: Apache-2.0
// One SMTP connection on the loop: name look-up, TCP, TLS, reading, writing, time-outs. The session
// has the protocol (smtp_session.h), and the pool distributes the mails. Law: every end of a client
// leads through on_closed, from the loop; then it is freed.
//
//   new --> looking up --> connecting --> setting up --> ready --> quitting
//    |          |              |              |            |          |
//    '----------+--------------+------+-------+------------+----------'
//                                     v
//                                  closing --> closed (and freed)
// setting up: connected; greeting, TLS and AUTH. quitting: takes no more mails, ends those it has
// started and sends QUIT. The session's phase is the protocol's own state. A move that the table
// does not allow closes the connection: its mails are returned, or unknown, as when a connection is
// lost.
#pragma once

#include <uv.h>

#include "common/tls/tls.h"
#include "services/dispatcher/vendor/smtp/smtp_session.h"

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

// The only writer of a client's state. false: not allowed, nothing changed
// (common/base/states/states.h).
bool smtp_client_move(SmtpClientState *state, SmtpClientState next, const char *host);

typedef struct SmtpClientHooks {
    SmtpHooks session;                      // next, on_answer; ctx is the pool's
    void (*on_ready)(void *ctx);            // greeted, encrypted and authenticated
    void (*on_lost)(void *ctx, Mail *mail); // its final dot may have arrived, the answer did not
    void (*on_back)(void *ctx, Mail *mail); // surely not sent
    // err CANCELLED: closed normally. useful: it carried a mail, or ended while it had none.
    // Freed after the call.
    void (*on_closed)(void *ctx, SmtpClient *client, bool useful, const Error *err);
} SmtpClientHooks;

typedef struct SmtpClientContext {
    uv_loop_t *loop;
    const SmtpOptions *options;
    TlsContext *tls;
    const SmtpClientHooks *hooks;
    void *ctx;
    unsigned turn; // which of the host's addresses: the turn-th, round and round
} SmtpClientContext;

SmtpClient *smtp_client_new(const SmtpClientContext *context); // starts to connect
bool smtp_client_idle(const SmtpClient *client);
bool smtp_client_ready(const SmtpClient *client);
void smtp_client_wake(SmtpClient *client); // there may be a mail
void smtp_client_quit(SmtpClient *client); // QUIT, after the mails that it has started
void smtp_client_abort(SmtpClient *client);
void smtp_client_tick(SmtpClient *client, uint64_t now_ms); // time-outs; a few times a second
