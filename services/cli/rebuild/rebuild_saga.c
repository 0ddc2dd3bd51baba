// SPDX-License-Identifier: Apache-2.0
// rebuild saga: orders and their transitions from EVENTS, in a copy; what differs from it in the
// live tables is replaced. No command, time-out or mail: what was sent when the orders were decided
// the first time was sent then.
//
// EVENTS is no segment (applications' events are in clear), so it holds seven days. The copy holds
// exactly the events that the live tables held in one snapshot: all up to the consumer's ack floor,
// which was read before, and behind it those of the inbox. So --dry-run is exact while order-saga
// runs. It stands still for the replacing, or the rebuild is refused.
#include <jansson.h>

#include "common/base/clock.h"
#include "common/orders/order_rebuild.h"
#include "common/session/key_file.h"
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
    OrderRebuild *fold;
    Reader *reader;
    SessionWait wait;
    bool writing, read_all;
    uint64_t next; // sequence
    bool lost;     // messages left the log before they were read
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

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Saga *saga = ctx;
    const StreamInfo *info = &saga->rebuild->streams[0];
    for (size_t i = 0; i < count && !saga->read_all; i++) {
        // EVENTS without gaps had none when the reading began: what is missing has left it since.
        bool counts = info->deleted == 0 && messages[i].stored_at_us > saga->orders.since_us;
        saga->lost = saga->lost || (counts && messages[i].sequence > saga->next);
        saga->next = messages[i].sequence + 1;
        saga->read_all = messages[i].sequence > info->last;
        if (!saga->read_all) {
            order_rebuild_take(saga->fold, &messages[i]);
        }
    }
    saga->read_all = saga->read_all || messages[count - 1].sequence >= info->last;
    go_on(saga);
}

static void on_reader_caught_up(void *ctx)
{
    Saga *saga = ctx;
    saga->read_all = true;
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
    saga->next = info->first;
    saga->wait = rebuild_wait_for(saga->rebuild);
    saga->reader = reader_new(saga->rebuild->session.bus, &options, &handlers, saga);
    bool ok = session_wait(&saga->wait, err);
    SessionWait freed = rebuild_wait_for(saga->rebuild);
    reader_free(saga->reader, rebuild_on_ended, &freed);
    rebuild_wait_ended(&freed);
    return ok && (!saga->lost || error_set(
                                     err, ERROR_TRANSIENT,
                                     "events left EVENTS before they were read (HINT: again)"));
}

// ---- folding ----

// A comparison seals nothing, so it needs no key.
static bool open_keys(Saga *saga, Error *err)
{
    const Settings *settings = &saga->rebuild->cli->settings;
    if (saga->rebuild->dry) {
        return true;
    }
    saga->master = keys_open(
        &saga->rebuild->session, settings->master_key_file, settings->epoch_keys_dir,
        saga->rebuild->cli->arena, &saga->epochs, err);
    if (saga->master != NULL) {
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
static int64_t log_beginning(const StreamInfo *info)
{
    if (info->count == 0) {
        return clock_now_us();
    }
    return info->deleted == 0 ? info->first_at_us : info->last_at_us + 1;
}

// Until the reading begins EVENTS goes on losing its beginning, so the log is taken to begin a
// little later: as much as the snapshot may take.
static bool remember(Saga *saga, Error *err)
{
    Rebuild *rebuild = saga->rebuild;
    const StreamInfo *info = &rebuild->streams[0];
    int64_t margin_us = MARGIN_US;
    for (int i = 0; i < PLANS_MAX; i++) {
        if (!rebuild_ask_streams(rebuild, err)) {
            return false;
        }
        bool whole = info->first <= 1 && info->deleted == 0;
        saga->orders.since_us = log_beginning(info) + (whole ? 0 : margin_us);
        int64_t began_us = clock_mono_us();
        if (!ask_settled(saga, err) ||
            !rebuild_orders_remember(&saga->orders, saga->settled, &rebuild->carried, err) ||
            !rebuild_ask_streams(rebuild, err)) {
            return false;
        }
        if (info->count == 0 || info->first_at_us <= saga->orders.since_us) {
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
    Saga saga = {.rebuild = rebuild};
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
    return ok;
}
