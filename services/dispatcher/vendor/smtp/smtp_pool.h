// SPDX-License-Identifier: Apache-2.0
// The SMTP vendor: a queue per lane and the connections that empty it. Connections are opened on
// demand, kept while there is work, closed when idle; while the server cannot be reached one
// connection tries again with back-off, and mails wait until their give_up_at_ms. Some connections
// serve the lanes critical and high only, and while several tenants send, one tenant's mails hold
// only a part of a lane's connections: only the sender of slow recipients waits for them. Law: each
// mail is in the queue, on one connection, or answered; a mail that was surely not sent goes back
// to the queue's front, one whose outcome is unknown is answered SEND_UNKNOWN and not tried again
// here. While the server cannot be reached one connection tries it also when no mail waits, so
// what smtp_pool_health() says ends within the back-off after the server is back.
#pragma once

#include <uv.h>

#include "services/dispatcher/vendor/smtp/smtp_options.h"
#include "services/dispatcher/vendor/vendor.h"

#define SMTP_POOL_LIMITED "limit"

typedef struct SmtpPool SmtpPool;

typedef struct SmtpPoolStats {
    uint64_t connects, connect_failures, closed;
    size_t connections, queued;
} SmtpPoolStats;

// options are copied, the strings in them borrowed. ERROR_CONFIG when STENTOR_SMTP_CA_FILE cannot
// be read.
SmtpPool *smtp_pool_new(uv_loop_t *loop, const SmtpOptions *options, Error *err);
Vendor smtp_pool_vendor(SmtpPool *pool);
// From now on each mail asks whether it may go, of so many that wait. false: *ret_at_us
// (clock_mono_us()) is when to ask again; a mail that waits for it to the end of its time is
// answered SEND_UNSENT with the code SMTP_POOL_LIMITED.
typedef bool (*SmtpPoolMayStart)(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us);
void smtp_pool_limit(SmtpPool *pool, SmtpPoolMayStart may_start, void *ctx);
void smtp_pool_send(SmtpPool *pool, Mail *mail);
void smtp_pool_drain(SmtpPool *pool);
// Drains, sends QUIT, and closes after a second at most; mails still held are answered
// (SEND_UNKNOWN, or SEND_RELEASED) before on_closed. The pool is gone then.
void smtp_pool_close(SmtpPool *pool, void (*on_closed)(void *ctx), void *ctx);
SmtpPoolStats smtp_pool_stats(const SmtpPool *pool);
// Down: connections failed, and none has been opened and no mail answered since the first failure.
VendorHealth smtp_pool_health(const SmtpPool *pool);
void smtp_pool_probe(SmtpPool *pool);
