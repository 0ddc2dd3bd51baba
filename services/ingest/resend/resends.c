// SPDX-License-Identifier: Apache-2.0
// An event's way: look up -> find its letter (resends_find.c) -> send it again (resends_wave.c).
#include "services/ingest/resend/resends.h"

#include <stdlib.h>

#include "services/ingest/resend/resends_internal.h"

enum { ROUND_MAX = 1024 }; // events that one read of DEAD is for

static void begin_round(Resends *r);

// ---- ends ----

void resends_settle(Wish *wish, const Error *err)
{
    bool refused = err != NULL && err->kind == ERROR_PERMANENT;
    metric_add(wish->resends->metrics->resend_refused, refused ? 1 : 0);
    if (refused && wish->says.letter.len > 0) {
        wish->delivery->message.payload = wish->says.letter;
    }
    delivery_settle(wish->delivery, err); // the wish may be gone with its batch
}

// Takes those out of wishes[0 .. count) that are settled now (NULL).
size_t resends_compact(Wish **wishes, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (wishes[i] != NULL) {
            wishes[kept++] = wishes[i];
        }
    }
    return kept;
}

void resends_end_round(Resends *r)
{
    arena_free(r->arena);
    r->arena = NULL;
    r->wishes = NULL;
    r->busy = false;
    begin_round(r);
}

static void fail_round(Resends *r, const Error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        resends_settle(r->wishes[i], err);
    }
    r->count = 0;
    resends_end_round(r);
}

bool resends_cancel_if_stopping(Resends *r)
{
    if (!r->stopping) {
        return false;
    }
    Error err = {0};
    (void)error_set(&err, ERROR_CANCELLED, "stopping");
    fail_round(r, &err);
    return true;
}

// ---- what is known ----

static void take_known(Resends *r, const DbTxn *txn)
{
    ResendKnown *known = arena_array(r->arena, r->count, sizeof *known);
    resend_sql_read(txn, known, r->count, r->arena);
    for (size_t i = 0; i < r->count; i++) {
        Wish *wish = r->wishes[i];
        wish->known = known[i];
        wish->letter = known[i].letter;
        wish->noted = known[i].letter != 0;
        if (known[i].done) {
            metric_add(r->metrics->resend_repeated, 1);
            resends_settle(wish, NULL);
            r->wishes[i] = NULL;
        } else if (resends_is_too_old(wish)) {
            resends_refuse_missing(wish);
            r->wishes[i] = NULL;
        }
    }
    r->count = resends_compact(r->wishes, r->count);
}

static void on_db_known(void *ctx, DbTxn *txn, const Error *err)
{
    Resends *r = ctx;
    if (err != NULL) {
        fail_round(r, err);
        return;
    }
    take_known(r, txn);
    if (!resends_cancel_if_stopping(r)) {
        resends_find_letters(r);
    }
}

static void begin_round(Resends *r)
{
    if (r->busy || r->first == NULL) {
        return;
    }
    r->busy = true;
    r->arena = arena_new(0);
    r->wishes = arena_array(r->arena, ROUND_MAX, sizeof(Wish *));
    const ResendWish **says = arena_array(r->arena, ROUND_MAX, sizeof *says);
    for (r->count = 0; r->count < ROUND_MAX && r->first != NULL; r->count++) {
        r->wishes[r->count] = r->first;
        says[r->count] = &r->first->says;
        r->first = r->first->next;
    }
    r->last = r->first == NULL ? &r->first : r->last;
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_look_up(txn, says, r->count);
    db_txn_submit(txn, on_db_known, r);
}

// ---- life ----

void resends_take(Resends *resends, Delivery *delivery, Str tenant)
{
    Error err = {0};
    Wish *wish = arena_zalloc(delivery->arena, sizeof *wish);
    DomainInput input = domain_input(&delivery->message, tenant, STR(RESEND_EVENT_TYPE), NULL);
    *wish = (Wish){.resends = resends, .delivery = delivery};
    if (!resend_event_read(&input, delivery->arena, &wish->says, &err)) {
        resends_settle(wish, &err);
        return;
    }
    if (resends->stopping) {
        (void)error_set(&err, ERROR_CANCELLED, "stopping");
        resends_settle(wish, &err);
        return;
    }
    *resends->last = wish;
    resends->last = &wish->next;
}

void resends_go(Resends *resends)
{
    begin_round(resends);
}

Resends *resends_new(Bus *bus, DbPool *pool, IngestMetrics *metrics)
{
    Resends *r = xcalloc(1, sizeof *r);
    r->bus = bus;
    r->pool = pool;
    r->metrics = metrics;
    r->last = &r->first;
    return r;
}

void resends_stop(Resends *resends)
{
    Error err = {0};
    (void)error_set(&err, ERROR_CANCELLED, "stopping");
    resends->stopping = true;
    while (resends->first != NULL) {
        Wish *wish = resends->first;
        resends->first = wish->next;
        resends_settle(wish, &err);
    }
    resends->last = &resends->first;
    resends_stop_scan(resends);
}

void resends_free(Resends *resends)
{
    free(resends);
}
