// SPDX-License-Identifier: Apache-2.0
// A wave: fetch -> note -> publish -> mark it published -> delete -> mark it done -> ack; from the
// last step to the first. Letters are one group (common/deadletter/letter_group.h): task i is of
// wishes[i], which is NULL once it is settled.
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/ingest/resend/resends_internal.h"

static void take_out(Resends *r, size_t at, const Error *err)
{
    resends_settle(r->wishes[at], err);
    r->wishes[at] = NULL;
}

// What JetStream refuses is its trouble, not the event's; what the rules refuse is.
static void take_out_failed(Resends *r)
{
    for (size_t i = 0; i < r->wave; i++) {
        LetterTask *task = &r->group.tasks[i];
        if (r->wishes[i] == NULL || task->fate == LETTER_OPEN) {
            continue;
        }
        bool by_jetstream = task->fate == LETTER_UNREAD || task->fate == LETTER_UNDELETED;
        if (by_jetstream && task->err.kind == ERROR_PERMANENT) {
            task->err.kind = ERROR_TRANSIENT;
        }
        take_out(r, i, &task->err);
    }
}

// Those of the wave that are still to be done and of which `is` holds.
static Wish **gather(const Resends *r, bool (*is)(const Wish *wish), size_t *ret_count)
{
    Wish **found = arena_array(r->letters, r->wave + 1, sizeof(Wish *));
    *ret_count = 0;
    for (size_t i = 0; i < r->wave; i++) {
        if (r->wishes[i] != NULL && is(r->wishes[i])) {
            found[(*ret_count)++] = r->wishes[i];
        }
    }
    return found;
}

static const ResendWish **says_of(const Resends *r, Wish *const *wishes, size_t count)
{
    const ResendWish **says = arena_array(r->letters, count + 1, sizeof *says);
    for (size_t i = 0; i < count; i++) {
        says[i] = &wishes[i]->says;
    }
    return says;
}

static void mark(
    Resends *r, Wish *const *wishes, size_t count, ResendMark (*mark_of)(const Wish *wish),
    DbDone done)
{
    ResendMark *marks = arena_array(r->letters, count + 1, sizeof *marks);
    for (size_t i = 0; i < count; i++) {
        marks[i] = mark_of(wishes[i]);
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_mark(txn, says_of(r, wishes, count), marks, count);
    db_txn_submit(txn, done, r);
}

// ---- mark and ack ----

// What an earlier delivery of this event has published, or nobody by this event.
static const char *end_of(const Wish *wish)
{
    if (wish->known.published) {
        return "failed mail was sent again before, its letter is deleted now";
    }
    return wish->gone ? "failed mail is not sent again: somebody else has, or dropped its letter"
                      : "failed mail is sent again";
}

static void tell_end(const Wish *wish)
{
    IngestMetrics *m = wish->resends->metrics;
    Metric *of_unpublished = wish->gone ? m->resend_gone : m->resent;
    metric_add(wish->known.published ? m->resend_repeated : of_unpublished, 1);
    bool none = wish->gone && !wish->known.published;
    LOG(none ? LOG_WARN : LOG_INFO, end_of(wish), log_str("tenant", wish->says.tenant),
        log_str("notification", wish->says.notification_id),
        log_str("requested_by", wish->says.requested_by), log_str("event", wish->says.identity),
        log_int("letter", (int64_t)wish->letter), log_int("attempt", wish->attempt));
}

// The next wave, or the end of the round.
static void end_wave(Resends *r, const Error *err)
{
    for (size_t i = 0; i < r->wave; i++) {
        if (r->wishes[i] != NULL) {
            if (err == NULL) {
                tell_end(r->wishes[i]);
            }
            take_out(r, i, err);
        }
    }
    r->count = resends_compact(r->wishes, r->count);
    r->wave = 0;
    arena_free(r->letters);
    r->letters = NULL;
    resends_begin_wave(r);
}

static void on_db_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    end_wave(ctx, err);
}

static ResendMark end_mark_of(const Wish *wish)
{
    return wish->gone && !wish->known.published ? RESEND_GONE : RESEND_DONE;
}

static bool is_left(const Wish *wish)
{
    (void)wish;
    return true;
}

// A letter that stays would be sent again by the next event about it.
static void on_letters_deleted(void *ctx)
{
    Resends *r = ctx;
    size_t count = 0;
    for (size_t i = 0; i < r->wave; i++) {
        LetterTask *task = &r->group.tasks[i];
        if (task->fate == LETTER_UNDELETED && task->err.kind == ERROR_CONFLICT) {
            task->fate = LETTER_OPEN; // somebody else has deleted it
        } else if (task->fate == LETTER_UNDELETED) {
            (void)error_wrap(
                &task->err, "the letter %" PRIu64 " of a mail that was sent again is not deleted",
                task->sequence);
        }
        CRASH_POINT_IF("resend.deleted", task->fate == LETTER_OPEN && task->remove);
    }
    take_out_failed(r);
    Wish **left = gather(r, is_left, &count);
    if (count == 0) {
        end_wave(r, NULL);
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
        end_wave(r, err);
        return;
    }
    CRASH_POINT("resend.marked");
    letter_group_delete(&r->group, on_letters_deleted, r);
}

static ResendMark published_mark_of(const Wish *wish)
{
    (void)wish;
    return RESEND_PUBLISHED;
}

static bool is_published_now(const Wish *wish)
{
    return !wish->gone && !wish->known.published;
}

// Marked before the letter goes: without it nobody could tell afterwards whether this event sent
// anything.
static void on_events_published(void *ctx)
{
    Resends *r = ctx;
    size_t count = 0;
    take_out_failed(r);
    Wish **published = gather(r, is_published_now, &count);
    CRASH_POINT_IF("resend.published", count > 0);
    if (count == 0) {
        letter_group_delete(&r->group, on_letters_deleted, r);
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
        end_wave(r, err);
        return;
    }
    CRASH_POINT("resend.noted");
    letter_group_publish(&r->group, on_events_published, r);
}

static bool is_not_noted(const Wish *wish)
{
    return !wish->noted;
}

static void note(Resends *r)
{
    size_t count = 0;
    Wish **fresh = gather(r, is_not_noted, &count);
    if (count == 0) {
        letter_group_publish(&r->group, on_events_published, r);
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

static bool is_its_letter(const Wish *wish, const Letter *letter)
{
    return str_eq(letter->tenant, wish->says.tenant) && letter_holds_work(letter) &&
           str_eq(str_from(letter->notification_id), wish->says.notification_id);
}

static void take_letter(Wish *wish, LetterTask *task)
{
    if (wish->known.published) {
        task->remove = true; // there is only the letter to delete
        return;
    }
    ResendRules rules = {
        .may_double = wish->says.may_double,
        .ignore_expiry = wish->says.ignore_expiry,
        .now_us = clock_now_us(),
    };
    letter_task_resend(task, &rules);
    task->own_id = false; // a duplicate: an earlier delivery of the event published it
    wish->attempt = task->attempt;
    if (task->fate == LETTER_REFUSED) {
        (void)error_wrap(&task->err, "letter %" PRIu64, wish->letter);
    }
}

static void take_missing(Resends *r, size_t at)
{
    Wish *wish = r->wishes[at];
    r->group.tasks[at].fate = LETTER_OPEN;
    if (wish->noted) {
        wish->gone = true;
        return;
    }
    delivery_again(
        wish->delivery, RESENDS_LETTER_WAIT_MS); // sent again or dropped by somebody just now
    r->wishes[at] = NULL;
}

static void on_letters_fetched(void *ctx)
{
    Resends *r = ctx;
    for (size_t i = 0; i < r->wave; i++) {
        LetterTask *task = &r->group.tasks[i];
        if (task->fate == LETTER_OPEN && is_its_letter(r->wishes[i], &task->letter)) {
            take_letter(r->wishes[i], task);
        } else if (task->fate == LETTER_OPEN || task->fate == LETTER_MISSING) {
            take_missing(r, i);
        }
    }
    take_out_failed(r);
    note(r);
}

void resends_begin_wave(Resends *r)
{
    if (r->count == 0) {
        resends_end_round(r);
        return;
    }
    if (resends_cancel_if_stopping(r)) {
        return;
    }
    r->letters = arena_new(0);
    r->wave = r->count < LETTER_GROUP_MAX ? r->count : LETTER_GROUP_MAX;
    letter_group_begin(&r->group, r->bus, r->letters, false);
    for (size_t i = 0; i < r->wave; i++) {
        letter_group_add(&r->group, r->wishes[i]->letter);
    }
    letter_group_fetch(&r->group, on_letters_fetched, r);
}
