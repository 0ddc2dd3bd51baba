// SPDX-License-Identifier: Apache-2.0
// An event's way: look up -> find its letter (resends_find.c) -> send it again (resends_chunk.c).
#include "services/ingest/resend/resends.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "services/ingest/resend/resends_internal.h"

enum { ROUND_MAX = 1024 }; // events that one read of DEAD is for

static void begin_round(Resends *r);

// ---- ends ----

void resends_settle(ResendItem *item, const Error *err)
{
    bool refused = err != NULL && err->kind == ERROR_PERMANENT;
    metric_add(item->resends->metrics->resend_refused, refused ? 1 : 0);
    if (refused && item->says.letter.len > 0) {
        BusMessage *message = &item->delivery->message;
        message->payload = item->says.letter;
        message->event_id = item->says.identity;
        event_keep_letter(item->resends->keys, clock_mono_us(), message, item->delivery->arena);
    }
    delivery_settle(item->delivery, err); // the item may be gone with its batch
}

// Takes those out of items[0 .. count) that are settled now (NULL).
size_t resends_compact(ResendItem **items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i] != NULL) {
            items[kept++] = items[i];
        }
    }
    return kept;
}

void resends_end_round(Resends *r)
{
    arena_free(r->arena);
    r->arena = NULL;
    r->items = NULL;
    r->busy = false;
    begin_round(r);
}

static void fail_round(Resends *r, const Error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        resends_settle(r->items[i], err);
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
        ResendItem *item = r->items[i];
        item->known = known[i];
        item->noted = known[i].letter != 0;
        item->letter = item->noted ? known[i].letter : item->says.dead_letter;
        if (known[i].done) {
            metric_add(r->metrics->resend_repeated, 1);
            resends_settle(item, NULL);
            r->items[i] = NULL;
        } else if (resends_is_too_old(item)) {
            resends_refuse_missing(item);
            r->items[i] = NULL;
        }
    }
    r->count = resends_compact(r->items, r->count);
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
    r->items = arena_array(r->arena, ROUND_MAX, sizeof(ResendItem *));
    const ResendRequest **says = arena_array(r->arena, ROUND_MAX, sizeof *says);
    for (r->count = 0; r->count < ROUND_MAX && r->first != NULL; r->count++) {
        r->items[r->count] = r->first;
        says[r->count] = &r->first->says;
        r->first = r->first->next;
    }
    r->last = r->first == NULL ? &r->first : r->last;
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_look_up(txn, says, r->count);
    db_txn_submit(txn, on_db_known, r);
}

// ---- life ----

void resends_take(Resends *resends, Delivery *delivery, Str tenant, Str type)
{
    Error err = {0};
    ResendItem *item = arena_zalloc(delivery->arena, sizeof *item);
    DomainInput input = domain_input(&delivery->message, tenant, type, NULL);
    *item = (ResendItem){.resends = resends, .delivery = delivery};
    if (!resend_event_read(&input, delivery->arena, &item->says, &err)) {
        resends_settle(item, &err);
        return;
    }
    if (resends->stopping) {
        (void)error_set(&err, ERROR_CANCELLED, "stopping");
        resends_settle(item, &err);
        return;
    }
    *resends->last = item;
    resends->last = &item->next;
}

void resends_go(Resends *resends)
{
    begin_round(resends);
}

Resends *resends_new(const ResendsOptions *options)
{
    Resends *r = xcalloc(1, sizeof *r);
    r->bus = options->bus;
    r->pool = options->pool;
    r->suppressions = options->suppressions;
    r->metrics = options->metrics;
    r->keys = options->keys;
    r->last = &r->first;
    return r;
}

void resends_stop(Resends *resends)
{
    Error err = {0};
    (void)error_set(&err, ERROR_CANCELLED, "stopping");
    resends->stopping = true;
    while (resends->first != NULL) {
        ResendItem *item = resends->first;
        resends->first = item->next;
        resends_settle(item, &err);
    }
    resends->last = &resends->first;
    resends_stop_scan(resends);
}

void resends_free(Resends *resends)
{
    free(resends);
}
