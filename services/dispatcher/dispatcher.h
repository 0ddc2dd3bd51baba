// SPDX-License-Identifier: Apache-2.0
// Dispatcher: RENDERED_* in, mail out; STATUS, DEFERRED and the send ledger record it.
//   read -> keys -> open -> claim (one statement a batch) -> send -> outcome (one statement a
//   flush) -> publish -> ack
// intake.c and claim.c lead up to the vendor, outcomes.c and record.c back; next.c and move.c are
// for mails with a route.
// settle.c reads what vendors' callbacks prove about mails whose outcome is unknown. Law: a mail is
// sent only under a claim that this process holds in the ledger, and an input is acked only after
// its outcome is committed and the events that follow are stored. One exception: a process that
// stops while the ledger cannot record the outcome of a mail that the vendor took acks it anyway
// (record.c).
//
// Killed between two durable effects (tests/integration/faults/test_kill.py covers each):
// - claim committed, not sent: redelivered; the lease has ended: counted as unknown, sent again or
//   parked
// - sent, outcome not committed: the same. This is the one window in which a mail may go out twice
// - outcome committed, not published: redelivered; the ledger's row gives the same events with the
//   same ids
// - published, not acked: the same; JetStream and readers drop the repeat by its id
// - a callback's proof committed, not published: redelivered; the row names the event that
//   settled it and is published again (settle_nats_pg_test.c)
// - a late callback noted, not published: redelivered; the note names its message and it is
//   published (callbacks/late.c)
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/db/keyring.h"
#include "common/service/metrics.h"
#include "common/trace/tracer.h"
#include "services/dispatcher/job.h"
#include "services/dispatcher/unknown.h"

typedef struct Dispatcher Dispatcher;

typedef struct DispatcherParts {
    uv_loop_t *loop;
    Bus *bus;
    DbPool *pool;
    MasterKey *master;
    Metrics *metrics;
    Tracer *tracer;       // NULL: no traces
    const char *instance; // of this process start; the ledger's owner
    Vendor vendor;        // of mails without a route: the SMTP server
    Vendors *vendors;     // NULL: there are no routes
    Attachments *attachments;
    JobRules rules; // slices borrowed
    UnknownPolicies unknown;
    int64_t lease_ms;
    int64_t late_s;    // how long a callback waits for the mail that it is about
    bool keep_foreign; // a dead letter of one that is about no mail of ours and has no mark of ours
    size_t batch_max;
    size_t claims_max; // of one lane, without an outcome; a whole batch may come on top of it
    size_t in_flight_max;
    size_t tenant_percent; // of claims_max, for one tenant in a slow lane (turns.h)
    const char *service;   // "stentor-dispatcher": whose consumers are read
} DispatcherParts;

// Borrows all parts until dispatcher_free; consumes once CONFIG has been read.
Dispatcher *dispatcher_new(const DispatcherParts *parts);
// false: `reason` gets the text for /readyz.
bool dispatcher_ready(const Dispatcher *dispatcher, Buf *reason);
// Something that it works on in spite of: the vendor cannot be reached. Empty: nothing.
void dispatcher_warn(const Dispatcher *dispatcher, Buf *warning);
// Stops consuming, releases mails that were not started, lets the others end; on_stopped when every
// delivery is settled and all handles are closed.
void dispatcher_stop(Dispatcher *dispatcher, void (*on_stopped)(void *ctx), void *ctx);
// After on_stopped, and after the pool is closed: its last answers still come here.
void dispatcher_free(Dispatcher *dispatcher);
