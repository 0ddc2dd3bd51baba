// SPDX-License-Identifier: Apache-2.0
// A chunk: fetch -> note -> publish -> mark it published -> delete -> mark it done -> ack; from the
// last step to the first. Letters are one group (common/deadletter/resend_group.h): task i is of
// items[i], which is NULL once it is settled.
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/ingest/resend/resends_internal.h"

static void take_out(Resends *r, size_t at, const Error *err)
{
    resends_settle(r->items[at], err);
    r->items[at] = NULL;
}

// What JetStream refuses is its trouble, not the event's; what the rules refuse is.
static void take_out_failed(Resends *r)
{
    for (size_t i = 0; i < r->chunk; i++) {
        ResendTask *task = &r->group.tasks[i];
        if (r->items[i] == NULL || task->fate == LETTER_OPEN) {
            continue;
        }
        bool by_jetstream = task->fate == LETTER_UNREAD || task->fate == LETTER_UNDELETED;
        if (by_jetstream && task->err.kind == ERROR_PERMANENT) {
            task->err.kind = ERROR_TRANSIENT;
        }
        take_out(r, i, &task->err);
    }
}

// Those of the chunk that are still to be done and of which `is` holds.
static ResendItem **gather(const Resends *r, bool (*is)(const ResendItem *item), size_t *ret_count)
{
    ResendItem **found = arena_array(r->letters, r->chunk + 1, sizeof(ResendItem *));
    *ret_count = 0;
    for (size_t i = 0; i < r->chunk; i++) {
        if (r->items[i] != NULL && is(r->items[i])) {
            found[(*ret_count)++] = r->items[i];
        }
    }
    return found;
}

static const ResendRequest **says_of(const Resends *r, ResendItem *const *items, size_t count)
{
    const ResendRequest **says = arena_array(r->letters, count + 1, sizeof *says);
    for (size_t i = 0; i < count; i++) {
        says[i] = &items[i]->says;
    }
    return says;
}

static void mark(
    Resends *r, ResendItem *const *items, size_t count,
    ResendMark (*mark_of)(const ResendItem *item), DbDone done)
{
    ResendMark *marks = arena_array(r->letters, count + 1, sizeof *marks);
    for (size_t i = 0; i < count; i++) {
        marks[i] = mark_of(items[i]);
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_mark(txn, says_of(r, items, count), marks, count);
    db_txn_submit(txn, done, r);
}

// ---- mark and ack ----

// What an earlier delivery of this event has published, or what this event has not published yet.
static const char *end_of(const ResendItem *item)
{
    if (item->known.published) {
        return "failed mail was sent again before, its dead letter is deleted now";
    }
    return item->gone ? "failed mail is not sent again: its dead letter is gone (an operator has "
                        "sent or dropped it)"
                      : "failed mail is sent again";
}

static void report_end(const ResendItem *item)
{
    IngestMetrics *m = item->resends->metrics;
    Metric *of_unpublished = item->gone ? m->resend_gone : m->resent;
    metric_add(item->known.published ? m->resend_repeated : of_unpublished, 1);
    bool none = item->gone && !item->known.published;
    LOG(none ? LOG_WARN : LOG_INFO, end_of(item), log_str("tenant", item->says.tenant),
        log_str("notification", item->says.notification_id),
        log_str("requested_by", item->says.requested_by), log_str("event_id", item->says.identity),
        log_int("letter", (int64_t)item->letter), log_int("attempt", item->attempt));
}

// The next chunk, or the end of the round.
static void end_chunk(Resends *r, const Error *err)
{
    for (size_t i = 0; i < r->chunk; i++) {
        if (r->items[i] != NULL) {
            if (err == NULL) {
                report_end(r->items[i]);
            }
            take_out(r, i, err);
        }
    }
    r->count = resends_compact(r->items, r->count);
    r->chunk = 0;
    arena_free(r->letters);
    r->letters = NULL;
    resends_begin_chunk(r);
}

static void on_db_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    end_chunk(ctx, err);
}

static ResendMark end_mark_of(const ResendItem *item)
{
    return item->gone && !item->known.published ? RESEND_GONE : RESEND_DONE;
}

static bool is_left(const ResendItem *item)
{
    (void)item;
    return true;
}

// A letter that stays would be sent again by the next event about it.
static void on_letters_deleted(void *ctx)
{
    Resends *r = ctx;
    size_t count = 0;
    for (size_t i = 0; i < r->chunk; i++) {
        ResendTask *task = &r->group.tasks[i];
        if (task->fate == LETTER_UNDELETED && task->err.kind == ERROR_CONFLICT) {
            task->fate = LETTER_OPEN; // an operator or another replica has deleted it
        } else if (task->fate == LETTER_UNDELETED) {
            (void)error_wrap(
                &task->err,
                "the letter %" PRIu64
                " of a mail that was sent again is not deleted, the event comes again",
                task->sequence);
        }
        CRASH_POINT_IF("resend.deleted", task->fate == LETTER_OPEN && task->remove);
    }
    take_out_failed(r);
    ResendItem **left = gather(r, is_left, &count);
    if (count == 0) {
        end_chunk(r, NULL);
    } else {
        mark(r, left, count, end_mark_of, on_db_marked);
    }
}

// ---- publish ----

static void on_db_marked_published(void *ctx, DbTxn *txn, const Error *err)
{
    Resends *r = ctx;
    (void)txn;
    if (err != NULL) {
        end_chunk(r, err);
        return;
    }
    CRASH_POINT("resend.marked");
    resend_group_delete(&r->group, on_letters_deleted, r);
}

static ResendMark published_mark_of(const ResendItem *item)
{
    (void)item;
    return RESEND_PUBLISHED;
}

static bool is_published_now(const ResendItem *item)
{
    return !item->gone && !item->known.published;
}

// An application's event keeps its id, and JetStream drops that for two minutes after it was stored
// last, perhaps by an earlier delivery of the resend. It comes again until it is stored for
// certain: what it makes has ids of its own.
static void wait_for_own_ids(Resends *r)
{
    for (size_t i = 0; i < r->chunk; i++) {
        ResendTask *task = &r->group.tasks[i];
        if (task->fate == LETTER_UNPUBLISHED && task->own_id) {
            task->err.kind = ERROR_TRANSIENT;
        }
    }
}

// Marked before the letter is deleted: without the mark it would be unknown afterwards whether this
// event sent anything.
static void on_events_published(void *ctx)
{
    Resends *r = ctx;
    size_t count = 0;
    wait_for_own_ids(r);
    take_out_failed(r);
    ResendItem **published = gather(r, is_published_now, &count);
    CRASH_POINT_IF("resend.published", count > 0);
    if (count == 0) {
        resend_group_delete(&r->group, on_letters_deleted, r);
    } else {
        mark(r, published, count, published_mark_of, on_db_marked_published);
    }
}

// ---- note ----

static void on_db_noted(void *ctx, DbTxn *txn, const Error *err)
{
    Resends *r = ctx;
    (void)txn;
    if (err != NULL) {
        end_chunk(r, err);
        return;
    }
    CRASH_POINT("resend.noted");
    resend_group_publish(&r->group, on_events_published, r);
}

static bool is_not_noted(const ResendItem *item)
{
    return !item->noted;
}

static void note(Resends *r)
{
    size_t count = 0;
    ResendItem **fresh = gather(r, is_not_noted, &count);
    if (count == 0) {
        resend_group_publish(&r->group, on_events_published, r);
        return;
    }
    uint64_t *letters = arena_array(r->letters, count, sizeof *letters);
    for (size_t i = 0; i < count; i++) {
        letters[i] = fresh[i]->letter;
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_note(txn, says_of(r, fresh, count), letters, count);
    db_txn_submit(txn, on_db_noted, r);
}

// ---- fetch ----

// One that the event names is of whatever stage; resend_rules.h says which are not sent again.
static bool is_its_letter(const ResendItem *item, const Letter *letter)
{
    bool named = item->says.dead_letter > 0;
    bool about = str_eq(str_from(letter->notification_id), item->says.notification_id);
    return str_eq(letter->tenant, item->says.tenant) && (named || letter_holds_work(letter)) &&
           (about || (named && item->says.notification_id.len == 0));
}

static void take_letter(ResendItem *item, ResendTask *task)
{
    if (item->known.published) {
        task->remove = true; // there is only the letter to delete
        return;
    }
    ResendRules rules = {
        .may_double = item->says.may_double,
        .ignore_expiry = item->says.ignore_expiry,
        .by_tenant = true,
        .now_us = clock_now_us(),
        .suppressions = item->resends->suppressions,
    };
    resend_task_prepare(task, &rules);
    item->attempt = task->attempt;
    if (task->fate == LETTER_REFUSED) {
        (void)error_wrap(&task->err, "letter %" PRIu64, item->letter);
    }
}

static void take_missing(Resends *r, size_t at)
{
    ResendItem *item = r->items[at];
    r->group.tasks[at].fate = LETTER_OPEN;
    if (item->noted || item->says.dead_letter > 0) {
        item->gone = true; // what the event named is sent or dropped: it takes no other letter
        return;
    }
    delivery_redeliver(
        item->delivery, RESENDS_LETTER_WAIT_MS); // sent again or dropped by an operator just now
    r->items[at] = NULL;
}

static void on_letters_fetched(void *ctx)
{
    Resends *r = ctx;
    for (size_t i = 0; i < r->chunk; i++) {
        ResendTask *task = &r->group.tasks[i];
        if (task->fate == LETTER_OPEN && is_its_letter(r->items[i], &task->letter)) {
            take_letter(r->items[i], task);
        } else if (task->fate == LETTER_OPEN || task->fate == LETTER_MISSING) {
            take_missing(r, i);
        }
    }
    take_out_failed(r);
    note(r);
}

void resends_begin_chunk(Resends *r)
{
    if (r->count == 0) {
        resends_end_round(r);
        return;
    }
    if (resends_cancel_if_stopping(r)) {
        return;
    }
    r->letters = arena_new(0);
    r->chunk = r->count < RESEND_GROUP_MAX ? r->count : RESEND_GROUP_MAX;
    resend_group_begin(&r->group, r->bus, r->letters, false);
    for (size_t i = 0; i < r->chunk; i++) {
        resend_group_add(&r->group, r->items[i]->letter);
    }
    resend_group_fetch(&r->group, on_letters_fetched, r);
}
