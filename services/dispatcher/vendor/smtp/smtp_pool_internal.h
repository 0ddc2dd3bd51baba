// SPDX-License-Identifier: Apache-2.0
// What smtp_pool.c and smtp_queue.c share.
#pragma once

#include "common/model/company.h"
#include "services/dispatcher/vendor/smtp/smtp_client.h"
#include "services/dispatcher/vendor/smtp/smtp_pool.h"

// Of one connection: one whose dot was written, and the next one's envelope.
enum { PLACE_MAILS = 2 };

// A place for one connection; how many of them are reserved is fixed, which one is where is not.
typedef struct SmtpPlace {
    struct SmtpPool *pool;
    SmtpClient *client;       // NULL: free
    Priority lowest;          // lane that it serves
    Mail *mails[PLACE_MAILS]; // given to it and not answered, oldest first
} SmtpPlace;

typedef struct MailQueue {
    Mail *head;
    Mail *tail;
} MailQueue;

struct SmtpPool {
    uv_loop_t *loop;
    SmtpOptions options;
    TlsContext *tls;
    MailQueue lanes[PRIORITY_COUNT];
    size_t queued;
    unsigned taken;
    SmtpPlace places[SMTP_CONNECTIONS_MAX]; // options.connections of them; the reserved ones first
    unsigned count;                         // of them taken
    unsigned tenant_max[PRIORITY_COUNT];    // of the lane's places, while several tenants send
    Company company;
    uv_timer_t tick;
    uv_timer_t soon; // pump() in the next turn of the loop
    uint64_t retry_at_ms;
    SmtpPoolMayStart may_start; // NULL: there is no limit
    void *may_start_ctx;
    int64_t limited_us;       // when the limit last kept a mail
    int64_t limited_until_us; // no mail goes before it, unless it is urgent
    unsigned failures;        // consecutive connections that carried nothing
    unsigned turn;
    Error trouble;
    int64_t down_since_us; // the wall clock at the first of these failures
    uint64_t down_ms;      // the same by the loop's clock
    uint64_t reached_ms;   // a connection became ready, or a mail was answered; 0: not yet
    bool probing;          // smtp_pool_probe(), until it is reached
    SmtpPoolStats stats;
    bool draining, closing;
    uint64_t close_at_ms;
    int handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// smtp_queue.c
void smtp_queue_push(SmtpPool *pool, Mail *mail);
void smtp_queue_push_front(SmtpPool *pool, Mail *mail);
Mail *smtp_queue_pop(SmtpPool *pool, Priority lane);           // its first; NULL: none
bool smtp_queue_has(const SmtpPool *pool, Priority lowest);    // in that lane or above
Mail *smtp_queue_next(SmtpPool *pool, const SmtpPlace *place); // the next mail for it; NULL: none
void smtp_queue_given(SmtpPlace *place, Mail *mail);           // to its connection
void smtp_queue_answered(SmtpPlace *place, const Mail *mail);  // or given back
