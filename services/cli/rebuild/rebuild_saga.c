// SPDX-License-Identifier: Apache-2.0
// rebuild saga: orders and their transitions from EVENTS, in a copy; what differs from it in the
// live tables is replaced. No command, time-out or mail: what was sent when the orders were decided
// the first time was sent then.
//
// EVENTS is no segment (its events' keys last two weeks), so it holds seven days. The copy holds
// exactly the events that the live tables held in one snapshot: all up to the consumer's ack floor,
// which was read before, and behind it those of the inbox. So --dry-run is exact while order-saga
// runs. It stands still for the replacing, or the rebuild is refused.
#include <jansson.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/domain/domain_event.h"
#include "common/orders/input.h"
#include "common/orders/order_rebuild.h"
#include "common/session/key_file.h"
#include "common/session/stream_walk.h"
#include "services/cli/rebuild/rebuild_gaps.h"
#include "services/cli/rebuild/rebuild_orders.h"
#include "services/cli/rebuild/rebuild_run.h"

enum {
    ATTEMPTS_MAX = 1000,
    ATTEMPTS_DEFAULT = 3, // STENTOR_SAGA_MAX_ATTEMPTS
    MARGIN_US = 1000000,
    PLANS_MAX = 5,
};

typedef struct Saga {
    Rebuild *rebuild;
    RebuildOrders orders;
    uint64_t settled;
    MasterKey *master;
    EpochFolder *epochs;
    Keyring *keyring;
    EventKeys *event_keys;
    OrderRebuild *fold;
    Reader *reader;
    SessionWait wait;
    bool writing, read_all;
    bool whole;     // no event was missing when it began: erased originals have their copies
    uint64_t first; // where EVENTS begins, with these
    int64_t first_at_us;
    // Copies stand behind what came after their originals: read first, and folded in their places.
    Arena *copies_arena;
    BusMessage *copies;
    size_t copy_count, copy_cap, copy_next;
    RebuildGaps gaps; // of the reading
} Saga;

// ---- reading ----

static void go_on(Saga *saga);

static void on_fold_written(void *ctx, const Error *err)
{
    Saga *saga = ctx;
    saga->writing = false;
    if (err != NULL) {
        session_wait_end(&saga->wait, err);
        return;
    }
    go_on(saga);
}

static void go_on(Saga *saga)
{
    if (saga->writing || saga->wait.done) {
        return;
    }
    if (order_rebuild_has_taken(saga->fold)) {
        saga->writing = true;
        reader_pause(saga->reader, true);
        order_rebuild_write(saga->fold, on_fold_written, saga);
    } else if (saga->read_all) {
        session_wait_end(&saga->wait, NULL);
    } else {
        reader_pause(saga->reader, false);
    }
}

static GapCopy copy_of(const BusMessage *message)
{
    return (GapCopy){event_original(message), event_original_at(message)};
}

// An original that is still there has the same id: the two are one.
static void take_copies_before(Saga *saga, uint64_t sequence)
{
    while (saga->copy_next < saga->copy_count &&
           event_original(&saga->copies[saga->copy_next]) < sequence) {
        order_rebuild_take(saga->fold, &saga->copies[saga->copy_next++]);
    }
}

static int compare_copies(const void *a, const void *b)
{
    uint64_t left = event_original(a);
    uint64_t right = event_original(b);
    return left < right ? -1 : left > right;
}

static bool is_kept(const Saga *saga, const BusMessage *message)
{
    return event_original(message) != 0 && saga->copy_count > 0 &&
           bsearch(message, saga->copies, saga->copy_count, sizeof *saga->copies, compare_copies) !=
               NULL;
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Saga *saga = ctx;
    const StreamInfo *info = &saga->rebuild->streams[0];
    for (size_t i = 0; i < count && !saga->read_all; i++) {
        // What is missing and has no copy has left EVENTS since, if nothing was missing before.
        bool counts = saga->whole && messages[i].stored_at_us > saga->orders.since_us;
        gaps_see(&saga->gaps, messages[i].sequence, copy_of(&messages[i]), counts);
        saga->read_all = messages[i].sequence > info->last;
        if (!saga->read_all && !is_kept(saga, &messages[i])) {
            take_copies_before(saga, messages[i].sequence);
            order_rebuild_take(saga->fold, &messages[i]);
        }
    }
    saga->read_all = saga->read_all || messages[count - 1].sequence >= info->last;
    if (saga->read_all) {
        take_copies_before(saga, info->last);
    }
    go_on(saga);
}

static void on_reader_caught_up(void *ctx)
{
    Saga *saga = ctx;
    saga->read_all = true;
    take_copies_before(saga, saga->rebuild->streams[0].last);
    go_on(saga);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Saga *saga = ctx;
    session_wait_end(&saga->wait, err);
}

static bool read_events(Saga *saga, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    const StreamInfo *info = &saga->rebuild->streams[0];
    const ReaderOptions options = {
        .stream = "EVENTS", .start_sequence = info->first, .batch_max = ORDER_REBUILD_BATCH};
    if (info->count == 0) {
        return true;
    }
    saga->gaps.next = info->first;
    saga->wait = rebuild_wait_for(saga->rebuild);
    saga->reader = reader_new(saga->rebuild->session.bus, &options, &handlers, saga);
    bool ok = session_wait(&saga->wait, err);
    SessionWait freed = rebuild_wait_for(saga->rebuild);
    reader_free(saga->reader, rebuild_on_ended, &freed);
    rebuild_wait_ended(&freed);
    bool lost = gaps_unfilled(&saga->gaps) > 0;
    gaps_done(&saga->gaps);
    return ok && (!lost || error_set(
                               err, ERROR_TRANSIENT,
                               "events left EVENTS before they were read (HINT: again)"));
}

// ---- folding ----

// EVENTS is sealed, so a comparison needs the master key too; it makes no data key.
static bool open_keys(Saga *saga, Error *err)
{
    const Settings *settings = &saga->rebuild->cli->settings;
    saga->master = keys_open(
        &saga->rebuild->session, settings->master_key_file, settings->epoch_keys_dir,
        saga->rebuild->cli->arena, &saga->epochs, err);
    if (saga->master != NULL) {
        saga->event_keys = event_keys_new(saga->master);
    }
    if (saga->master != NULL && !saga->rebuild->dry) {
        saga->keyring =
            keyring_new(saga->rebuild->pool, saga->master, &(KeyringOptions){.found_only = true});
    }
    return saga->master != NULL;
}

static bool fold(Saga *saga, Error *err)
{
    Rebuild *rebuild = saga->rebuild;
    int64_t attempts = ATTEMPTS_DEFAULT;
    if (!args_int(
            &rebuild->cli->args, "max-attempts", ATTEMPTS_DEFAULT, 1, ATTEMPTS_MAX, &attempts,
            err)) {
        return false;
    }
    rebuild_open_pool(rebuild);
    bool ok = open_keys(saga, err);
    if (ok) {
        OrderRebuildOptions options = {
            .schema = ORDERS_SCHEMA,
            .copy = ORDERS_COPY,
            .pool = rebuild->pool,
            .keyring = saga->keyring,
            .event_keys = saga->event_keys,
            .settled = saga->settled,
            .max_attempts = attempts};
        saga->fold = order_rebuild_new(&options);
        ok = read_events(saga, err);
        rebuild->events = order_rebuild_events(saga->fold);
        rebuild->unreadable = order_rebuild_unreadable(saga->fold);
    }
    rebuild_close_pool(rebuild);
    order_rebuild_free(saga->fold);
    keyring_free(saga->keyring);
    event_keys_free(saga->event_keys);
    epoch_folder_close(saga->epochs);
    master_key_free(saga->master);
    return ok;
}

// ---- the order ----

// Up to here every event that order-saga reads is in its tables.
static bool ask_settled(Saga *saga, Error *err)
{
    Rebuild *rebuild = saga->rebuild;
    Str reply;
    if (!session_request(
            &rebuild->session, "$JS.API.CONSUMER.INFO.EVENTS.order-saga", STR_EMPTY,
            rebuild->cli->arena, &reply, err)) {
        return false;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *floor = json_object_get(root, "ack_floor");
    bool there = json_is_object(floor);
    saga->settled = (uint64_t)json_integer_value(json_object_get(floor, "stream_seq"));
    json_decref(root);
    return there ||
           error_set(
               err, ERROR_CONFIG, "EVENTS has no consumer 'order-saga' (HINT: stentor migrate)");
}

// What is missing was stored before this.
static int64_t log_beginning(const Saga *saga)
{
    const StreamInfo *info = &saga->rebuild->streams[0];
    if (info->count == 0) {
        return clock_now_us();
    }
    return saga->whole ? saga->first_at_us : info->last_at_us + 1;
}

static void keep_copy(Saga *saga, const BusMessage *message)
{
    Arena *arena = saga->copies_arena;
    Str tenant, type;
    if (!domain_subject(message->subject, &tenant, &type) || !saga_input_wants(type)) {
        return;
    }
    if (saga->copy_count == saga->copy_cap) {
        saga->copy_cap = saga->copy_cap == 0 ? ORDER_REBUILD_BATCH : 2 * saga->copy_cap;
        saga->copies = xrealloc(saga->copies, saga->copy_cap * sizeof *saga->copies);
    }
    BusMessage *kept = &saga->copies[saga->copy_count++];
    *kept = *message;
    kept->native = NULL; // of its headers one is read from here on, the others are sealed
    kept->subject = arena_str(arena, message->subject);
    kept->payload = arena_str(arena, message->payload);
    kept->event_id = arena_str(arena, message->event_id);
    kept->traceparent = STR_EMPTY;
    kept->headers = str_from(arena_printf(
        arena, EVENT_ORIGINAL_HEADER ": %llu\n", (unsigned long long)event_original(message)));
}

typedef struct Looking {
    Saga *saga;
    RebuildGaps gaps;
} Looking;

static void on_event(void *ctx, const BusMessage *message)
{
    Looking *looking = ctx;
    GapCopy copy = copy_of(message);
    gaps_see(&looking->gaps, message->sequence, copy, true);
    if (copy.original != 0) {
        keep_copy(looking->saga, message);
    }
}

// Originals that were erased behind their copies are not missing.
static bool look_for_gaps(Saga *saga, Error *err)
{
    Looking looking = {.saga = saga};
    const StreamInfo *info = &saga->rebuild->streams[0];
    saga->copy_count = 0;
    arena_reset(saga->copies_arena);
    bool ok = session_walk(&saga->rebuild->session, "EVENTS", NULL, on_event, &looking, err);
    saga->whole = ok && gaps_unfilled(&looking.gaps) == 0;
    saga->first_at_us = info->first_at_us;
    saga->first = gaps_beginning(&looking.gaps, info->first, &saga->first_at_us);
    gaps_done(&looking.gaps);
    if (saga->copy_count > 1) {
        qsort(saga->copies, saga->copy_count, sizeof *saga->copies, compare_copies);
    }
    return ok;
}

// Until the reading begins EVENTS goes on losing its beginning, so the log is taken to begin a
// little later: as much as the snapshot may take.
static bool remember(Saga *saga, Error *err)
{
    Rebuild *rebuild = saga->rebuild;
    const StreamInfo *info = &rebuild->streams[0];
    int64_t margin_us = MARGIN_US;
    for (int i = 0; i < PLANS_MAX; i++) {
        if (!rebuild_ask_streams(rebuild, err) || !look_for_gaps(saga, err)) {
            return false;
        }
        bool whole = saga->first <= 1 && saga->whole;
        saga->orders.since_us = log_beginning(saga) + (whole ? 0 : margin_us);
        int64_t began_us = clock_mono_us();
        if (!ask_settled(saga, err) ||
            !rebuild_orders_remember(&saga->orders, saga->settled, &rebuild->carried, err) ||
            !rebuild_ask_streams(rebuild, err) || !look_for_gaps(saga, err)) {
            return false;
        }
        if (info->count == 0 || saga->first_at_us <= saga->orders.since_us) {
            return true;
        }
        margin_us = 2 * (clock_mono_us() - began_us) + MARGIN_US;
    }
    return error_set(
        err, ERROR_TRANSIENT, "EVENTS loses its beginning faster than it is read (HINT: again)");
}

static bool plan(Saga *saga, Error *err)
{
    Rebuild *rebuild = saga->rebuild;
    char since[CLOCK_RFC3339_SIZE];
    if (!remember(saga, err)) {
        return false;
    }
    clock_format(saga->orders.since_us, since);
    return rebuild->carried == 0 || rebuild->carry ||
           error_set(
               err, ERROR_CONFIG,
               "the log of 'EVENTS' begins at %s: %lld older orders cannot be compared (HINT: "
               "--carry-older takes them from the live tables as they are)",
               since, (long long)rebuild->carried);
}

static bool replace(Saga *saga, Error *err)
{
    int64_t left = 0;
    if (saga->rebuild->differences == 0) {
        return true;
    }
    if (!rebuild_orders_replace(&saga->orders, &left, err)) {
        return false;
    }
    if (left > 0) {
        cli_note(
            saga->rebuild->cli,
            "%lld orders that differ are in the archive's tables, which keep them as they are",
            (long long)left);
    }
    return true;
}

bool rebuild_saga(Rebuild *rebuild, Error *err)
{
    Error ignored;
    Saga saga = {.rebuild = rebuild, .copies_arena = arena_new(0)};
    rebuild->stream_names = rebuild->row->streams;
    rebuild->stream_count = 1;
    bool opened = rebuild_orders_open(&saga.orders, rebuild->cli->settings.database_url, err);
    bool ok =
        opened && (rebuild->dry || rebuild_orders_stand_still(&saga.orders, err)) &&
        plan(&saga, err) && fold(&saga, err) &&
        rebuild_orders_compare(&saga.orders, rebuild_show, rebuild, &rebuild->differences, err) &&
        (rebuild->dry || replace(&saga, err));
    if (opened) {
        ok = rebuild_orders_drop(&saga.orders, ok ? err : &ignored) && ok;
    }
    rebuild_orders_close(&saga.orders);
    free(saga.copies);
    arena_free(saga.copies_arena);
    return ok;
}
