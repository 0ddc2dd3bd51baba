// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "services/ingest/accept/accept_internal.h"

TenantQueue *accept_queue_of(Accept *a, Str tenant)
{
    TenantQueue *q = map_get(a->tenants, tenant);
    if (q == NULL) {
        q = xcalloc(1, sizeof *q);
        map_put(a->tenants, tenant, q);
    }
    return q;
}

void accept_begin_waiting(Accept *a, TenantQueue *q, const Submission *s)
{
    q->waiting += s->count;
    q->waiting_bytes += s->bytes;
    a->waiting += s->count;
    a->waiting_bytes += s->bytes;
    metric_set(a->options.metrics->waiting, (double)a->waiting);
}

static void end_waiting(Accept *a, const Submission *s)
{
    TenantQueue *q = accept_queue_of(a, s->tenant);
    q->waiting -= s->count;
    q->waiting_bytes -= s->bytes;
    a->waiting -= s->count;
    a->waiting_bytes -= s->bytes;
    metric_set(a->options.metrics->waiting, (double)a->waiting);
    if (q->waiting == 0) {
        (void)map_remove(a->tenants, s->tenant);
    }
}

// A repeat gets the answer of the one it waited for, as if it had come later.
static void answer_follower(Submission *s, const Submission *first, const AcceptResult *result)
{
    AcceptResult own = *result;
    bool same = memcmp(s->body_hash, first->body_hash, SHA256_LEN) == 0;
    if (own.verdict == ACCEPT_STORED || own.verdict == ACCEPT_REPLAYED) {
        own.verdict = same ? ACCEPT_REPLAYED : ACCEPT_OTHER_BODY;
    }
    s->done(s->ctx, &own);
}

void accept_answer(Accept *a, Submission *s, const AcceptResult *result)
{
    if (s->flight.len > 0) {
        (void)map_remove(a->flights, s->flight);
    }
    end_waiting(a, s);
    Submission *follower = s->followers;
    while (follower != NULL) {
        Submission *next = follower->next;
        end_waiting(a, follower);
        answer_follower(follower, s, result);
        follower = next;
    }
    s->done(s->ctx, result);
}

AcceptResult accept_result_of(const Submission *s, const AcceptPart *part)
{
    AcceptResult stored = {.verdict = ACCEPT_STORED, .status = 202, .answer = s->answer};
    if (part->accept_id != 0 || str_eq(part->stored_answer, s->answer)) {
        return stored; // the latter: our own first try was committed, though its answer was lost
    }
    if (part->stored_status == 0) { // it was there a moment ago, and its day was over
        AcceptResult gone = {.verdict = ACCEPT_UNAVAILABLE};
        (void)error_set(
            &gone.error, ERROR_TRANSIENT, "the idempotency key was dropped while it was looked up");
        return gone;
    }
    bool same = str_eq(part->stored_hash, str_of(s->body_hash, SHA256_LEN));
    return (AcceptResult){
        .verdict = same ? ACCEPT_REPLAYED : ACCEPT_OTHER_BODY,
        .status = part->stored_status,
        .answer = part->stored_answer,
    };
}
