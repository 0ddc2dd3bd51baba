// SPDX-License-Identifier: Apache-2.0
// An event's way: look up -> find its letter -> fetch -> note -> publish -> mark it published ->
// delete -> mark it done -> ack.
#include "services/ingest/resends.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/bus/reader.h"
#include "common/bus/topology.h"
#include "common/dead/resend.h"
#include "common/dead/store.h"
#include "services/ingest/resend_sql.h"

enum {
    ROUND_MAX = 1024, // events that one read of DEAD is for
    WAVE_MAX = 32,    // letters in memory at once; one may have 900 KB
    SCAN_BATCH = 32,
    LETTER_WAITS = 5, // deliveries granted to a letter: it is stored just after its status
    LETTER_WAIT_MS = 1000,
};
// A letter is stored seconds after its status, and history may be some minutes behind.
static const int64_t FRESH_US = INT64_C(600) * 1000000;
static const int64_t SKEW_US =
    INT64_C(3600) * 1000000; // of clocks: ids and DEAD have each their own

// One event; lives in its batch's arena, so it is gone once it is settled.
typedef struct Wish {
    Resends *resends;
    Delivery *delivery;
    ResendWish says;
    ResendKnown known;
    uint64_t letter;   // found, or noted earlier; 0: none
    bool noted;        // by an earlier delivery of this event
    bool gone;         // the noted letter is
    uint32_t attempt;  // that is made now
    BusOut out;        // in the wave's arena
    struct Wish *same; // another event about the same notification
    struct Wish *next; // that waits
} Wish;

struct Resends {
    Bus *bus;
    DbPool *pool;
    IngestMetrics *metrics;
    Wish *first, **last; // waiting
    bool busy;           // with a round
    bool stopping;
    // the round
    Arena *arena;
    Wish **wishes; // those still to be done
    size_t count;
    Reader *reader;
    Arena *scanned;
    Map *wanted;      // "tenant/ntf_..." -> Wish
    Error unreadable; // DEAD itself
    // its wave: wishes[0 .. wave)
    Arena *letters;
    size_t wave;
    size_t open; // of the wave: answers that are still to come
};

static void begin_round(Resends *r);
static void begin_wave(Resends *r);

// ---- ends ----

static void settle(Wish *wish, const Error *err)
{
    bool refused = err != NULL && err->kind == ERROR_PERMANENT;
    metric_add(wish->resends->metrics->resend_refused, refused ? 1 : 0);
    if (refused && wish->says.letter.len > 0) {
        wish->delivery->message.payload = wish->says.letter;
    }
    delivery_settle(wish->delivery, err); // the wish may be gone with its batch
}

// Takes those out of wishes[0 .. count) that are settled now (NULL).
static size_t compact(Wish **wishes, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (wishes[i] != NULL) {
            wishes[kept++] = wishes[i];
        }
    }
    return kept;
}

static void settle_all(Resends *r, const Error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        settle(r->wishes[i], err);
    }
    r->count = 0;
}

static void end_round(Resends *r)
{
    arena_free(r->arena);
    r->arena = NULL;
    r->wishes = NULL;
    r->busy = false;
    begin_round(r);
}

static void fail_round(Resends *r, const Error *err)
{
    settle_all(r, err);
    end_round(r);
}

static bool cancel_if_stopping(Resends *r)
{
    if (!r->stopping) {
        return false;
    }
    Error err = {0};
    (void)error_set(&err, ERROR_CANCELLED, "stopping");
    fail_round(r, &err);
    return true;
}

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
        settle(wish, err);
        r->wishes[i] = NULL;
    }
    r->count = compact(r->wishes, r->count);
    r->wave = 0;
    arena_free(r->letters);
    r->letters = NULL;
    begin_wave(r);
}

static void drop_settled(Resends *r)
{
    size_t left = compact(r->wishes, r->wave);
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
    settle(r->wishes[slot->at], err);
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
    delivery_again(wish->delivery, LETTER_WAIT_MS); // sent again or dropped by somebody just now
    r->wishes[slot->at] = NULL;
}

static void handle_fetched(Slot *slot, Str reply, const Error *err)
{
    Resends *r = slot->resends;
    Error refusal = {0};
    BusMessage message;
    Letter letter;
    bool found = false;
    if (err == NULL && !letter_reply(reply, r->letters, &message, &found, &refusal)) {
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

static void begin_wave(Resends *r)
{
    if (r->count == 0) {
        end_round(r);
        return;
    }
    if (cancel_if_stopping(r)) {
        return;
    }
    r->letters = arena_new(0);
    r->wave = r->count < WAVE_MAX ? r->count : WAVE_MAX;
    r->open = r->wave;
    for (size_t i = 0; i < r->wave; i++) {
        letter_ask(r->bus, r->wishes[i]->letter, on_letter_fetched, slot_of(r, i));
    }
}

// ---- finding the letters ----

static bool is_one_of(const char *status, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(status), str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool has_gone_out(const Wish *wish)
{
    static const char *const names[] = {"sent",    "delivered", "opened",
                                        "clicked", "bounced",   "complained"};
    return is_one_of(wish->known.status, names, sizeof names / sizeof *names);
}

// When anything is known to have happened to it at the latest.
static int64_t seen_us_of(const Wish *wish)
{
    int64_t seen_us = wish->known.seen_us;
    return seen_us > wish->says.created_us ? seen_us : wish->says.created_us;
}

// As far as history knows: it may be behind.
static bool is_under_way(const Wish *wish)
{
    static const char *const names[] = {"queued", "scheduled", "rendering", "sending"};
    return is_one_of(wish->known.status, names, sizeof names / sizeof *names);
}

// Its letter would have left DEAD by its age. One that was scheduled far ahead may have failed just
// now.
static bool is_too_old(const Wish *wish)
{
    int64_t kept_us = topology_stream("DEAD")->max_age_s * INT64_C(1000000);
    return wish->letter == 0 && !is_under_way(wish) &&
           seen_us_of(wish) + kept_us + SKEW_US < clock_now_us();
}

// The letter of one that failed is stored just after its status, which may be why the event came.
// Each look reads DEAD from the notification's time on: not for an id that somebody made up.
static bool may_come(const Wish *wish)
{
    static const char *const names[] = {"suppressed", "superseded"};
    bool never =
        has_gone_out(wish) || is_one_of(wish->known.status, names, sizeof names / sizeof *names);
    bool fresh = is_under_way(wish) || seen_us_of(wish) + FRESH_US > clock_now_us();
    return !never && fresh && wish->delivery->message.delivered < LETTER_WAITS;
}

// A letter may be older than what a vendor's callback has told since.
static bool refuse_sent(Wish *wish)
{
    if (wish->noted || wish->says.may_double || !has_gone_out(wish)) {
        return false;
    }
    Error err = {0};
    (void)error_set(
        &err, ERROR_PERMANENT,
        "field 'notification_id': '" STR_FMT "' has left us, it is '%s' (HINT: may_double sends it "
        "all the same)",
        STR_ARG(wish->says.notification_id), wish->known.status);
    settle(wish, &err);
    return true;
}

static void refuse_missing(Wish *wish)
{
    if (may_come(wish)) {
        delivery_again(wish->delivery, LETTER_WAIT_MS);
        return;
    }
    Error err = {0};
    bool known = wish->known.status[0] != '\0';
    (void)error_set(
        &err, ERROR_PERMANENT,
        "field 'notification_id': tenant '" STR_FMT "' has no dead letter of '" STR_FMT "' (%s%s)",
        STR_ARG(wish->says.tenant), STR_ARG(wish->says.notification_id),
        known ? "it is " : "not known to it", wish->known.status);
    settle(wish, &err);
}

// false: it is settled or given back.
static bool is_ready(const Resends *r, Wish *wish)
{
    if (wish->letter != 0) {
        return !refuse_sent(wish);
    }
    if (r->unreadable.kind != ERROR_NONE) {
        settle(wish, &r->unreadable);
    } else {
        refuse_missing(wish);
    }
    return false;
}

static void end_scan(Resends *r)
{
    map_free(r->wanted);
    arena_free(r->scanned);
    r->wanted = NULL;
    r->scanned = NULL;
    r->reader = NULL;
    for (size_t i = 0; i < r->count; i++) {
        if (!r->stopping && !is_ready(r, r->wishes[i])) {
            r->wishes[i] = NULL;
        }
    }
    r->count = compact(r->wishes, r->count);
    begin_wave(r);
}

static void on_reader_freed(void *ctx)
{
    end_scan(ctx);
}

static void stop_scan(Resends *r)
{
    if (r->reader != NULL) {
        Reader *reader = r->reader;
        r->reader = NULL;
        reader_free(reader, on_reader_freed, r);
    }
}

static Str key_of(Str tenant, Str notification, Arena *arena)
{
    return str_from(
        arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(notification)));
}

// The last one counts: a mail that failed again has a later letter.
static void take_scanned(Resends *r, const BusMessage *message)
{
    arena_reset(r->scanned);
    Letter letter;
    letter_read(message, r->scanned, &letter);
    if (letter.notification_id[0] == '\0' || !letter_holds_work(&letter)) {
        return;
    }
    Str key = key_of(letter.tenant, str_from(letter.notification_id), r->scanned);
    for (Wish *wish = map_get(r->wanted, key); wish != NULL; wish = wish->same) {
        wish->letter = letter.sequence;
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Resends *r = ctx;
    for (size_t i = 0; i < count && r->reader != NULL; i++) {
        take_scanned(r, &messages[i]);
    }
}

static void on_reader_caught_up(void *ctx)
{
    stop_scan(ctx);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Resends *r = ctx;
    r->unreadable = *err;
    r->unreadable.kind = ERROR_TRANSIENT; // the stream's trouble, not the event's
    stop_scan(r);
}

// A letter is younger than its notification, and only the tenants that ask are read.
static ReaderOptions scan_options(Resends *r)
{
    int64_t now_us = clock_now_us();
    int64_t since_us = now_us;
    Str tenant = STR_EMPTY;
    bool several = false;
    for (size_t i = 0; i < r->count; i++) {
        const Wish *wish = r->wishes[i];
        if (wish->letter == 0) {
            since_us = wish->says.created_us < since_us ? wish->says.created_us : since_us;
            several = several || (tenant.len > 0 && !str_eq(tenant, wish->says.tenant));
            tenant = wish->says.tenant;
        }
    }
    const char *filter =
        several ? "ntf.dead.>" : arena_printf(r->arena, "ntf.dead.*." STR_FMT, STR_ARG(tenant));
    return (ReaderOptions){
        .stream = "DEAD",
        .filter = filter,
        .start_time_us = since_us > SKEW_US ? since_us - SKEW_US : 1,
        .batch_max = SCAN_BATCH,
    };
}

static size_t want_letters(Resends *r)
{
    size_t wanted = 0;
    for (size_t i = 0; i < r->count; i++) {
        Wish *wish = r->wishes[i];
        if (wish->letter == 0) {
            Str key = key_of(wish->says.tenant, wish->says.notification_id, r->arena);
            wish->same = map_get(r->wanted, key);
            map_put(r->wanted, key, wish);
            wanted++;
        }
    }
    return wanted;
}

static void find_letters(Resends *r)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    r->wanted = map_new(NULL);
    r->scanned = arena_new(0);
    r->unreadable = (Error){0};
    if (want_letters(r) == 0) {
        end_scan(r);
        return;
    }
    ReaderOptions options = scan_options(r);
    r->reader = reader_new(r->bus, &options, &handlers, r);
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
            settle(wish, NULL);
            r->wishes[i] = NULL;
        } else if (is_too_old(wish)) {
            refuse_missing(wish);
            r->wishes[i] = NULL;
        }
    }
    r->count = compact(r->wishes, r->count);
}

static void on_db_known(void *ctx, DbTxn *txn, const Error *err)
{
    Resends *r = ctx;
    if (err != NULL) {
        fail_round(r, err);
        return;
    }
    take_known(r, txn);
    if (!cancel_if_stopping(r)) {
        find_letters(r);
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
        settle(wish, &err);
        return;
    }
    if (resends->stopping) {
        (void)error_set(&err, ERROR_CANCELLED, "stopping");
        settle(wish, &err);
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
        settle(wish, &err);
    }
    resends->last = &resends->first;
    stop_scan(resends);
}

void resends_free(Resends *resends)
{
    free(resends);
}
