// SPDX-License-Identifier: Apache-2.0
// The LMTP listener on the loop: connections, their times and their number, around LmtpSession. It
// serves the operator's own mail server on the same machine or network, never the Internet: no TLS,
// no authentication. Law: a mail is answered after whoever stores it has answered for each
// recipient, and each wait for a client ends.
#pragma once

#include <uv.h>

#include "common/base/error.h"

#include "services/webhook-receiver/lmtp/lmtp_session.h"

typedef struct LmtpServer LmtpServer;

// A whole mail: valid until the last lmtp_answer.
typedef struct LmtpMail {
    Str text; // as much as is kept, from its beginning
    Arena *arena;
    size_t count;
    const Str *recipients;
    void *const *users; // what `recipient` found of each
    int64_t received_at_us;
    void *connection;
} LmtpMail;

typedef struct LmtpHandler {
    // NULL: the address is taken; else the reply without CR LF. *ret_user lives in `arena`.
    const char *(*recipient)(void *ctx, Str address, Arena *arena, void **ret_user);
    // Must lead to one lmtp_answer for each recipient, now or later, in any order.
    void (*mail)(void *ctx, const LmtpMail *mail);
    void *ctx;
} LmtpHandler;

typedef struct LmtpServerOptions {
    const char *bind; // an address, or the path of a UNIX socket
    int port;         // of an address; 0: any free one
    LmtpLimits limits;
    size_t connections; // at once; beyond it 421
    int64_t idle_ms;    // for the next whole command, or to read the replies
    int64_t mail_ms;    // from DATA to the end of the mail
    LmtpHandler handler;
} LmtpServerOptions;

// ERROR_CONFIG when it cannot listen there.
LmtpServer *lmtp_server_new(uv_loop_t *loop, const LmtpServerOptions *options, Error *err);
int lmtp_server_port(const LmtpServer *server); // 0: a UNIX socket
// `reply` is static. After the last one of the mail, `mail` is gone.
void lmtp_answer(const LmtpMail *mail, size_t recipient, const char *reply);
// No new connections and commands; on_stopped, from the loop, when every mail is answered and all
// is closed.
void lmtp_server_stop(LmtpServer *server, void (*on_stopped)(void *ctx), void *ctx);
void lmtp_server_free(LmtpServer *server); // after on_stopped; NULL-safe
