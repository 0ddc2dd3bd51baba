// SPDX-License-Identifier: Apache-2.0
// A wave: fetch -> note -> publish -> mark it published -> delete -> mark it done -> ack; from the
// last step to the first.
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/jetstream/get_message.h"
#include "common/deadletter/resend.h"
#include "common/deadletter/store.h"
#include "services/ingest/resend/resends_internal.h"

enum { WAVE_MAX = 32 }; // letters in memory at once; one may have 900 KB

// ---- a wave: mark and ack ----

static const ResendWish **says_of(const Resends *r, size_t count)
{
    const ResendWish **says = arena_array(r->letters, count, sizeof *says);
    for (size_t i = 0; i < count; i++) {
        says[i] = &r->wishes[i]->says;
    }
    return says;
}

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
        Wish *wish = r->wishes[i];
        if (err == NULL) {
            tell_end(wish);
        }
        resends_settle(wish, err);
        r->wishes[i] = NULL;
    }
    r->count = resends_compact(r->wishes, r->count);
    r->wave = 0;
    arena_free(r->letters);
    r->letters = NULL;
    resends_begin_wave(r);
}

static void drop_settled(Resends *r)
{
    size_t left = resends_compact(r->wishes, r->wave);
    for (size_t i = r->wave; i < r->count; i++) {
        r->wishes[left + i - r->wave] = r->wishes[i];
    }
    r->count -= r->wave - left;
    r->wave = left;
}

static void on_db_marked(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    end_wave(ctx, err);
}

static ResendMark mark_of(const Wish *wish)
{
    return wish->gone && !wish->known.published ? RESEND_GONE : RESEND_DONE;
}

static void mark_done(Resends *r)
{
    drop_settled(r);
    if (r->wave == 0) {
        end_wave(r, NULL);
        return;
    }
    ResendMark *marks = arena_array(r->letters, r->wave, sizeof *marks);
    for (size_t i = 0; i < r->wave; i++) {
        marks[i] = mark_of(r->wishes[i]);
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_mark(txn, says_of(r, r->wave), marks, r->wave);
    db_txn_submit(txn, on_db_marked, r);
}

// ---- a wave: delete ----

// Wishes are settled by their place, for a settled one is gone.
typedef struct Slot {
    Resends *resends;
    size_t at;
} Slot;

static Slot *slot_of(Resends *r, size_t at)
{
    Slot *slot = arena_zalloc(r->letters, sizeof *slot);
    *slot = (Slot){r, at};
    return slot;
}

static void fail_one(Slot *slot, const Error *err)
{
    Resends *r = slot->resends;
    resends_settle(r->wishes[slot->at], err);
    r->wishes[slot->at] = NULL;
}

// A letter that stays would be sent again by the next event about it.
static void handle_deleted(Slot *slot, Str reply, const Error *err)
{
    Error refusal = {0};
    CRASH_POINT_IF("resend.deleted", err == NULL);
    if (err == NULL && !letter_deleted(reply, &refusal) && refusal.kind != ERROR_CONFLICT) {
        (void)error_wrap(
            &refusal, "the letter %" PRIu64 " of a mail that was sent again is not deleted",
            slot->resends->wishes[slot->at]->letter);
        refusal.kind = ERROR_TRANSIENT; // JetStream's trouble, not the event's
        err = &refusal;
    }
    if (err != NULL) {
        fail_one(slot, err);
    }
    if (--slot->resends->open == 0) {
        mark_done(slot->resends);
    }
}

static void on_letter_deleted(void *ctx, Str reply, const Error *err)
{
    handle_deleted(ctx, reply, err);
}

static void delete_letters(Resends *r)
{
    r->open = 1;
    for (size_t i = 0; i < r->wave; i++) {
        if (!r->wishes[i]->gone) {
            r->open++;
            letter_delete(r->bus, r->wishes[i]->letter, false, on_letter_deleted, slot_of(r, i));
        }
    }
    if (--r->open == 0) {
        mark_done(r);
    }
}

// ---- a wave: publish ----

static void handle_marked_published(Resends *r, const Error *err)
{
    if (err != NULL) {
        end_wave(r, err);
        return;
    }
    CRASH_POINT("resend.marked");
    delete_letters(r);
}

static void on_db_marked_published(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    handle_marked_published(ctx, err);
}

static bool is_to_publish(const Wish *wish)
{
    return !wish->gone && !wish->known.published;
}

// Before the letter goes: without it nobody could tell afterwards whether this event sent anything.
static void mark_published(Resends *r)
{
    drop_settled(r);
    const ResendWish **says = arena_array(r->letters, r->wave + 1, sizeof *says);
    ResendMark *marks = arena_array(r->letters, r->wave + 1, sizeof *marks);
    size_t count = 0;
    for (size_t i = 0; i < r->wave; i++) {
        if (is_to_publish(r->wishes[i])) {
            says[count] = &r->wishes[i]->says;
            marks[count++] = RESEND_PUBLISHED;
        }
    }
    if (count == 0) {
        delete_letters(r);
        return;
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_mark(txn, says, marks, count);
    db_txn_submit(txn, on_db_marked_published, r);
}

static void handle_published(Slot *slot, const Error *err)
{
    Resends *r = slot->resends;
    if (err != NULL) {
        fail_one(slot, err);
    } else {
        CRASH_POINT("resend.published");
    }
    if (--r->open == 0) {
        mark_published(r);
    }
}

static void on_event_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // published by an earlier delivery of the event, or by a person
    handle_published(ctx, err);
}

static void publish(Resends *r)
{
    r->open = 1;
    for (size_t i = 0; i < r->wave; i++) {
        if (is_to_publish(r->wishes[i])) {
            r->open++;
            bus_publish(r->bus, &r->wishes[i]->out, on_event_acked, slot_of(r, i));
        }
    }
    bus_flush(r->bus);
    if (--r->open == 0) {
        mark_published(r);
    }
}

// ---- a wave: note ----

static void handle_noted(Resends *r, const Error *err)
{
    if (err != NULL) {
        end_wave(r, err);
        return;
    }
    CRASH_POINT("resend.noted");
    publish(r);
}

static void on_db_noted(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    handle_noted(ctx, err);
}

static void note(Resends *r)
{
    drop_settled(r);
    const ResendWish **says = arena_array(r->letters, r->wave + 1, sizeof *says);
    uint64_t *letters = arena_array(r->letters, r->wave + 1, sizeof *letters);
    size_t count = 0;
    for (size_t i = 0; i < r->wave; i++) {
        if (!r->wishes[i]->noted) {
            says[count] = &r->wishes[i]->says;
            letters[count++] = r->wishes[i]->letter;
        }
    }
    if (count == 0) {
        publish(r);
        return;
    }
    DbTxn *txn = db_txn_new(r->pool);
    resend_sql_note(txn, says, letters, count);
    db_txn_submit(txn, on_db_noted, r);
}

// ---- a wave: fetch ----

static bool is_its_letter(const Wish *wish, const Letter *letter)
{
    return str_eq(letter->tenant, wish->says.tenant) && letter_holds_work(letter) &&
           str_eq(str_from(letter->notification_id), wish->says.notification_id);
}

static void take_letter(Slot *slot, const Letter *letter)
{
    Resends *r = slot->resends;
    Wish *wish = r->wishes[slot->at];
    Error err = {0};
    Resend resend;
    if (wish->known.published) {
        return; // there is only the letter to delete
    }
    ResendRules rules = {
        .may_double = wish->says.may_double,
        .ignore_expiry = wish->says.ignore_expiry,
        .now_us = clock_now_us(),
    };
    if (!letter_resend(letter, &rules, r->letters, &resend, &err)) {
        (void)error_wrap(&err, "letter %" PRIu64, wish->letter);
        fail_one(slot, &err);
        return;
    }
    wish->attempt = resend.attempt;
    wish->out = resend.out;
}

static void take_missing(Slot *slot)
{
    Resends *r = slot->resends;
    Wish *wish = r->wishes[slot->at];
    if (wish->noted) {
        wish->gone = true;
        return;
    }
    delivery_again(
        wish->delivery, RESENDS_LETTER_WAIT_MS); // sent again or dropped by somebody just now
    r->wishes[slot->at] = NULL;
}

static void handle_fetched(Slot *slot, Str reply, const Error *err)
{
    Resends *r = slot->resends;
    Error refusal = {0};
    BusMessage message;
    Letter letter;
    bool found = false;
    if (err == NULL && !get_message_reply(reply, "DEAD", r->letters, &message, &found, &refusal)) {
        refusal.kind = ERROR_TRANSIENT; // JetStream's trouble, not the event's
        err = &refusal;
    }
    if (err != NULL) {
        fail_one(slot, err);
    } else {
        if (found) {
            letter_read(&message, r->letters, &letter);
        }
        if (found && is_its_letter(r->wishes[slot->at], &letter)) {
            take_letter(slot, &letter);
        } else {
            take_missing(slot);
        }
    }
    if (--r->open == 0) {
        note(r);
    }
}

static void on_letter_fetched(void *ctx, Str reply, const Error *err)
{
    handle_fetched(ctx, reply, err);
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
    r->wave = r->count < WAVE_MAX ? r->count : WAVE_MAX;
    r->open = r->wave;
    for (size_t i = 0; i < r->wave; i++) {
        MessageQuery query = {.stream = "DEAD", .sequence = r->wishes[i]->letter};
        get_message(r->bus, &query, on_letter_fetched, slot_of(r, i));
    }
}
