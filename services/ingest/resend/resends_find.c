// SPDX-License-Identifier: Apache-2.0
// One read of DEAD for all events of a round, and what becomes of those without a letter.
#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/deadletter/resend_rules.h"
#include "services/ingest/resend/resends_internal.h"

enum {
    SCAN_BATCH = 32,
    LETTER_WAITS = 5, // deliveries granted to a letter: it is stored just after its status
};
// A letter is stored seconds after its status, and history may be some minutes behind.
static const int64_t FRESH_US = INT64_C(600) * 1000000;
static const int64_t SKEW_US =
    INT64_C(3600) * 1000000; // of clocks: ids and DEAD have each their own

static bool is_one_of(const char *status, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(status), str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool has_gone_out(const ResendItem *item)
{
    static const char *const names[] = {"sent",    "delivered", "opened",
                                        "clicked", "bounced",   "complained"};
    return is_one_of(item->known.status, names, sizeof names / sizeof *names);
}

// When anything is known to have happened to it at the latest.
static int64_t seen_us_of(const ResendItem *item)
{
    int64_t seen_us = item->known.seen_us;
    return seen_us > item->says.created_us ? seen_us : item->says.created_us;
}

// By history, which may be behind.
static bool is_under_way(const ResendItem *item)
{
    static const char *const names[] = {"queued", "scheduled", "rendering", "sending"};
    return is_one_of(item->known.status, names, sizeof names / sizeof *names);
}

bool resends_is_too_old(const ResendItem *item)
{
    int64_t kept_us = topology_stream("DEAD")->max_age_s * INT64_C(1000000);
    return item->letter == 0 && !is_under_way(item) &&
           seen_us_of(item) + kept_us + SKEW_US < clock_now_us();
}

// The letter of one that failed is stored just after its status, which may be why the event came.
// Each look reads DEAD from the notification's time on: not for an id that was made up.
static bool may_come(const ResendItem *item)
{
    static const char *const names[] = {"suppressed", "superseded"};
    bool never =
        has_gone_out(item) || is_one_of(item->known.status, names, sizeof names / sizeof *names);
    bool fresh = is_under_way(item) || seen_us_of(item) + FRESH_US > clock_now_us();
    return !never && fresh && item->delivery->message.delivered < LETTER_WAITS;
}

// A vendor's callback may have come after the letter was stored.
static bool refuse_sent(ResendItem *item)
{
    if (item->noted || item->says.may_double || !has_gone_out(item)) {
        return false;
    }
    Error err = {0};
    (void)error_set(
        &err, ERROR_PERMANENT,
        "field 'notification_id': '" STR_FMT
        "' was given to the mail server, it is '%s' (HINT: may_double sends it "
        "all the same)",
        STR_ARG(item->says.notification_id), item->known.status);
    resends_settle(item, &err);
    return true;
}

void resends_refuse_missing(ResendItem *item)
{
    if (may_come(item)) {
        delivery_redeliver(item->delivery, RESENDS_LETTER_WAIT_MS);
        return;
    }
    Error err = {0};
    bool known = item->known.status[0] != '\0';
    (void)error_set(
        &err, ERROR_PERMANENT,
        "field 'notification_id': tenant '" STR_FMT "' has no dead letter of '" STR_FMT "' (%s%s)",
        STR_ARG(item->says.tenant), STR_ARG(item->says.notification_id),
        known ? "it is " : "not known to it", item->known.status);
    resends_settle(item, &err);
}

// false: it is settled or given back.
static bool is_ready(const Resends *r, ResendItem *item)
{
    if (item->letter != 0) {
        return !refuse_sent(item);
    }
    if (r->unreadable.kind != ERROR_NONE) {
        resends_settle(item, &r->unreadable);
    } else {
        resends_refuse_missing(item);
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
        if (!r->stopping && !is_ready(r, r->items[i])) {
            r->items[i] = NULL;
        }
    }
    r->count = resends_compact(r->items, r->count);
    resends_begin_chunk(r);
}

static void on_reader_freed(void *ctx)
{
    end_scan(ctx);
}

void resends_stop_scan(Resends *r)
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
    for (ResendItem *item = map_get(r->wanted, key); item != NULL; item = item->same) {
        item->letter = letter.sequence;
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
    resends_stop_scan(ctx);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Resends *r = ctx;
    r->unreadable = *err;
    r->unreadable.kind = ERROR_TRANSIENT; // the stream's trouble, not the event's
    resends_stop_scan(r);
}

// A letter is younger than its notification, and only the tenants that ask are read.
static ReaderOptions scan_options(Resends *r)
{
    int64_t now_us = clock_now_us();
    int64_t since_us = now_us;
    Str tenant = STR_EMPTY;
    bool several = false;
    for (size_t i = 0; i < r->count; i++) {
        const ResendItem *item = r->items[i];
        if (item->letter == 0) {
            since_us = item->says.created_us < since_us ? item->says.created_us : since_us;
            several = several || (tenant.len > 0 && !str_eq(tenant, item->says.tenant));
            tenant = item->says.tenant;
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
        ResendItem *item = r->items[i];
        if (item->letter == 0) {
            Str key = key_of(item->says.tenant, item->says.notification_id, r->arena);
            item->same = map_get(r->wanted, key);
            map_put(r->wanted, key, item);
            wanted++;
        }
    }
    return wanted;
}

void resends_find_letters(Resends *r)
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
