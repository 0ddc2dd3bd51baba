// SPDX-License-Identifier: Apache-2.0
// Crash windows (tests/integration/faults/test_saga_crash.py):
// - Killed before the commit: the events are redelivered.
// - Killed between the commit and the acks (saga.committed): they are redelivered, the inbox drops
//   them, and the sweep publishes the rows of the outbox.
#include "services/order-saga/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/codec/hash.h"
#include "common/service/cleanup.h"
#include "services/order-saga/consumer_internal.h"
#include "services/order-saga/saga_trace.h"

#define STAGE "order-saga"

enum {
    BATCH_MAX = 1000,
    IN_FLIGHT_MAX = 4000,
    LOSSES_MAX = 5, // after so many losses against a faster process an event waits for a while
    LOST_WAIT_MS = 500,
};

static void start_batch(Consumer *consumer);

// ---- the end of a batch ----

static void end_batch(Batch *batch, Queue *again)
{
    Consumer *consumer = batch->consumer;
    consumer_put_before(&consumer->waiting, again);
    fold_done(&batch->fold);
    arena_free(batch->arena);
    consumer->busy = false;
    start_batch(consumer);
}

static void give_back(Batch *batch, const Error *err)
{
    Consumer *consumer = batch->consumer;
    Queue again = {NULL, NULL};
    bool halve = err->kind == ERROR_PERMANENT && batch->count > 1;
    if (halve) {
        consumer->batch_max = batch->count / 2;
        again = batch->events;
    } else {
        LOG(LOG_WARN, "order events could not be stored, they are redelivered",
            log_int("count", (int64_t)batch->count), log_error(err));
        while (batch->events.first != NULL) {
            consumer_refuse(consumer, consumer_pop(&batch->events)->delivery, err);
        }
        consumer->batch_max = BATCH_MAX;
    }
    end_batch(batch, &again);
}

// A line for each transition, as many in a second as lines about notifications.
static void log_transition(const Entry *entry)
{
    if (entry->verdict == VERDICT_APPLIED && log_takes_notification(LOG_INFO)) {
        LOG(LOG_INFO, "an order changed its state", log_str("tenant", entry->input->tenant),
            log_text("correlation", entry->input->correlation_id),
            log_str("message", entry->input->message_id), log_str("type", entry->input->type),
            log_text("from", order_state_name(entry->from)),
            log_text("to", order_state_name(entry->to)));
    }
}

static void count_entry(const SagaMetrics *metrics, const Entry *entry)
{
    log_transition(entry);
    int repeats = entry->times > 1 ? entry->times - 1 : 0;
    metric_add(metrics->verdicts[entry->verdict], 1);
    metric_add(metrics->verdicts[VERDICT_DUPLICATE], repeats);
    if (entry->verdict == VERDICT_CONFLICT) {
        LOG(LOG_WARN, "an event contradicts the state of its order and is ignored",
            log_str("tenant", entry->input->tenant),
            log_text("correlation", entry->input->correlation_id),
            log_str("message", entry->input->message_id), log_str("type", entry->input->type),
            log_text("state", order_state_name(entry->from)), log_text("reason", entry->reason));
    }
}

static void count_order(const SagaMetrics *metrics, const Order *order)
{
    if (!order_is_changed(order)) {
        return;
    }
    metric_add(metrics->started, order->expected == 0 ? 1 : 0);
    if (order->finished_at_us != 0) {
        metric_add(metrics->finished[order->state], 1);
        metric_observe(
            metrics->duration_seconds, (double)(order->finished_at_us - order->placed_at_us) / 1e6);
    }
}

static void count_batch(const Batch *batch)
{
    const SagaMetrics *metrics = batch->consumer->options.metrics;
    const Fold *fold = &batch->fold;
    int64_t oldest_us = INT64_MAX;
    for (size_t i = 0; i < fold->entry_count; i++) {
        const Entry *entry = fold->entry_list[i];
        if (!entry->order->is_lost) {
            count_entry(metrics, entry);
            saga_span(batch->consumer->options.tracer, entry, clock_now_us());
            int64_t at_us = entry->input->received_at_us;
            oldest_us = entry->times > 0 && at_us < oldest_us ? at_us : oldest_us;
        }
    }
    for (size_t i = 0; i < fold->order_count; i++) {
        const Order *order = fold->order_list[i];
        metric_add(metrics->lost, order->is_lost ? 1 : 0);
        if (!order->is_lost) {
            count_order(metrics, order);
        }
    }
    for (size_t i = 0; i < fold->command_count; i++) {
        const Command *command = &fold->commands[i];
        bool again = command->command == COMMAND_PLACE && command->retries > 0;
        metric_add(metrics->retries, again && !command->order->is_lost ? 1 : 0);
    }
    if (oldest_us != INT64_MAX) {
        metric_observe(metrics->processing_seconds, (double)(clock_now_us() - oldest_us) / 1e6);
    }
}

static void publish_rows(Batch *batch)
{
    Consumer *consumer = batch->consumer;
    for (size_t i = 0; i < batch->row_count; i++) {
        const OutRow *row = &batch->rows[i];
        bool withheld = row->withheld != NULL;
        if (row->sequence_number != 0 && !withheld) {
            outbox_send(consumer->options.outbox, row, batch->arena);
        }
        metric_add(
            consumer->options.metrics->withheld, row->sequence_number != 0 && withheld ? 1 : 0);
    }
}

// A failed order is a dead letter: of its last time-out, so it holds no personal data, and
// resending it changes nothing. Killed between the commit and the letter, the time-out is
// redelivered as one that is known, and makes the same letter; one that is published again makes
// none.
static bool is_failure(const Pending *event)
{
    const Entry *entry = event->entry;
    if (entry->verdict == VERDICT_APPLIED) {
        return entry->to == ORDER_FAILED;
    }
    return entry->is_known && event->delivery->message.delivered > 1 &&
           order_failed_by(entry->order, &event->input);
}

static void settle_stored(const Consumer *consumer, const Pending *event)
{
    Error failed = {0};
    const Order *order = event->entry->order;
    if (!is_failure(event)) {
        delivery_settle(event->delivery, NULL);
        return;
    }
    (void)error_set(
        &failed, ERROR_PERMANENT, "order '%s' has failed: " SAGA_FAILED_REASON " (%d)",
        order->order_id, (int)order->retries);
    // OrderFailed and the order's row say the same, so DEAD may be trimmed of it.
    event->delivery->reason_code = STR("order_failed");
    consumer_refuse(consumer, event->delivery, &failed);
}

// They stay in the table until their retention, and their orders go on without them.
static void warn_of_unreadable(const Fold *fold)
{
    if (fold->waiting_unreadable > 0) {
        LOG(LOG_WARN, "events that waited for their order cannot be opened any more",
            log_int("count", (int64_t)fold->waiting_unreadable), log_error(&fold->waiting_error));
    }
}

static void on_db_stored(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    Consumer *consumer = batch->consumer;
    if (err != NULL) {
        give_back(batch, err);
        return;
    }
    CRASH_POINT("saga.committed");
    warn_of_unreadable(&batch->fold);
    saga_sql_stored(txn, &batch->fold, batch->rows, batch->row_count);
    publish_rows(batch);
    count_batch(batch);
    Queue again = {NULL, NULL};
    while (batch->events.first != NULL) {
        Pending *event = consumer_pop(&batch->events);
        if (!event->entry->order->is_lost) {
            settle_stored(consumer, event);
        } else if (++event->losses < LOSSES_MAX) {
            consumer_push_back(&again, event);
        } else {
            delivery_redeliver(event->delivery, LOST_WAIT_MS);
        }
    }
    consumer->batch_max = consumer->batch_max * 2 < BATCH_MAX ? consumer->batch_max * 2 : BATCH_MAX;
    end_batch(batch, &again);
}

// ---- writing ----

static bool is_erased(const Batch *batch, const Order *order, DataKey **ret_key)
{
    *ret_key = batch->wants[batch->want_of[order->number - 1]].key;
    return *ret_key == NULL;
}

static bool make_command(Batch *batch, const Command *command, OutRow *row, Error *err)
{
    DataKey *key = NULL;
    Recipient recipient = {.email = STR_EMPTY, .full_name = STR_EMPTY};
    bool erased = is_erased(batch, command->order, &key);
    if (!erased && command->order->checked_out != NULL) {
        recipient = recipient_of(command->order->checked_out);
    } else if (!erased && !recipient_unseal(key, command->order, batch->arena, &recipient, err)) {
        return false;
    }
    if (!message_command(command, &recipient, batch->arena, &row->message, err)) {
        return false;
    }
    row->withheld = erased ? "the recipient is erased" : NULL;
    row->body = erased ? STR_EMPTY : command_seal(key, &row->message, batch->arena);
    return true;
}

static bool make_wait(Batch *batch, const Command *wait, OutRow *row, Error *err)
{
    int64_t due_at_us =
        batch->fold.now_us + batch->consumer->options.retry_timeout_ms * INT64_C(1000);
    if (!message_timeout(wait, due_at_us, batch->arena, &row->message, err)) {
        return false;
    }
    wait->order->wait_due_us = due_at_us;
    row->message.happened_at_us = batch->fold.now_us;
    row->body = row->message.payload;
    return true;
}

static bool make_rows(Batch *batch, Error *err)
{
    const Fold *fold = &batch->fold;
    batch->rows = arena_array(batch->arena, fold->command_count, sizeof(OutRow));
    for (size_t i = 0; i < fold->command_count; i++) {
        const Command *command = &fold->commands[i];
        OutRow *row = &batch->rows[batch->row_count++];
        row->order = command->order;
        row->traceparent =
            saga_traceparent(batch->consumer->options.tracer, command->cause, batch->arena);
        row->initiator = command->cause->message_id;
        bool ok = command->command == COMMAND_NONE ? make_wait(batch, command, row, err)
                                                   : make_command(batch, command, row, err);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static void seal_recipients(Batch *batch)
{
    for (size_t i = 0; i < batch->fold.order_count; i++) {
        Order *order = batch->fold.order_list[i];
        const SagaInput *input = order->checked_out;
        DataKey *key = NULL;
        if (input != NULL && !is_erased(batch, order, &key)) {
            Recipient recipient = recipient_of(input);
            order->recipient = recipient_seal(key, order, &recipient, batch->arena);
        }
    }
}

static void on_keyring_done(void *ctx, const Error *err)
{
    Batch *batch = ctx;
    Error own = {0};
    if (err != NULL) {
        give_back(batch, err);
        return;
    }
    seal_recipients(batch);
    if (batch->fold.seals && !event_keys_ready(batch->fold.event_keys, batch->fold.mono_us, &own)) {
        give_back(batch, &own);
        return;
    }
    if (!make_rows(batch, &own)) {
        give_back(batch, &own);
        return;
    }
    DbTxn *txn = db_txn_new(batch->consumer->options.pool);
    saga_sql_store(txn, &batch->fold, batch->rows, batch->row_count);
    db_txn_submit(txn, on_db_stored, batch);
}

// ---- deciding ----

static void want_key(Batch *batch, Order *order)
{
    size_t *at = &batch->want_of[order->number - 1];
    if (*at != SIZE_MAX) {
        return;
    }
    *at = batch->want_count++;
    KeyWant *want = &batch->wants[*at];
    if (order->checked_out !=
        NULL) { // a recipient who orders again after an erasure gets a new key
        Str email = order->checked_out->email;
        address_hash(
            batch->consumer->options.hash_key, order->tenant, CHANNEL_EMAIL, email,
            order->email_hash);
        *want = keyring_want_address(
            batch->consumer->options.keyring, DATA_KEY_RECORD, order->tenant, CHANNEL_EMAIL, email);
    } else {
        *want = message_key_want(order->tenant, order->recipient, batch->arena);
    }
}

static void on_db_loaded(void *ctx, DbTxn *txn, const Error *err)
{
    Batch *batch = ctx;
    if (err != NULL) {
        give_back(batch, err);
        return;
    }
    Fold *fold = &batch->fold;
    saga_sql_loaded(txn, fold);
    fold_run(fold);
    batch->wants = arena_array(batch->arena, fold->order_count, sizeof(KeyWant));
    batch->want_of = arena_array(batch->arena, fold->order_count, sizeof(size_t));
    memset(batch->want_of, 0xff, fold->order_count * sizeof(size_t));
    for (size_t i = 0; i < fold->command_count; i++) {
        if (fold->commands[i].command != COMMAND_NONE) {
            want_key(batch, fold->commands[i].order);
        }
    }
    keyring_resolve(
        batch->consumer->options.keyring, batch->wants, batch->want_count, on_keyring_done, batch);
}

static void start_batch(Consumer *consumer)
{
    if (consumer->busy || consumer->waiting.first == NULL) {
        return;
    }
    consumer->busy = true;
    Arena *arena = arena_new(64 * 1024);
    Batch *batch = arena_zalloc(arena, sizeof *batch);
    batch->consumer = consumer;
    batch->arena = arena;
    fold_init(
        &batch->fold, arena, consumer->batch_max, clock_now_us(), consumer->options.max_attempts);
    batch->fold.event_keys = consumer->options.event_keys;
    batch->fold.seals = consumer->options.seals;
    batch->fold.mono_us = clock_mono_us();
    while (consumer->waiting.first != NULL && batch->count < consumer->batch_max) {
        Pending *event = consumer_pop(&consumer->waiting);
        consumer_push_back(&batch->events, event);
        event->entry = fold_add(&batch->fold, &event->input);
        batch->count++;
    }
    DbTxn *txn = db_txn_new(consumer->options.pool);
    saga_sql_load(txn, &batch->fold);
    db_txn_submit(txn, on_db_loaded, batch);
}

// ---- arriving events ----

static bool open_event(const Consumer *consumer, Delivery *delivery, Error *err)
{
    int64_t now_us = clock_mono_us();
    EventKeys *keys = consumer->options.event_keys;
    bool ok = event_open(keys, now_us, &delivery->message, delivery->arena, err);
    if (ok && consumer->options.seals) {
        event_keep(keys, now_us, &delivery->message, delivery->arena);
    }
    return ok;
}

static bool read_event(
    const Consumer *consumer, Delivery *delivery, Str tenant, Str type, Pending *ret, Error *err)
{
    ret->delivery = delivery;
    return open_event(consumer, delivery, err) &&
           saga_message_read(&delivery->message, tenant, type, delivery->arena, &ret->input, err);
}

// An invalid CleanUpSentEmail starts nothing; ingest makes the dead letter of it.
static void take_clean_up(Consumer *consumer, Delivery *delivery, Str tenant, Str type)
{
    Str by = STR_EMPTY;
    Error err = {0};
    bool ok = !str_eq(type, STR(CLEANUP_EVENT_TYPE)) ||
              (open_event(consumer, delivery, &err) &&
               cleanup_event_read(&delivery->message, delivery->arena, &tenant, &by, &err));
    if (ok) {
        consumer->options.on_clean_up(consumer->options.ctx, delivery, tenant);
    } else {
        metric_add(consumer->options.metrics->passed, 1);
        delivery_settle(delivery, NULL);
    }
}

static void take_delivery(Consumer *consumer, Delivery *delivery)
{
    Str tenant = STR_EMPTY;
    Str type = STR_EMPTY;
    Error err = {0};
    bool is_event = domain_subject(delivery->message.subject, &tenant, &type);
    if (is_event && (str_eq(type, STR("CleanUpOrders")) || str_eq(type, STR("CleanUpSentEmail")))) {
        take_clean_up(consumer, delivery, tenant, type);
        return;
    }
    if (!is_event || !saga_input_wants(type)) {
        metric_add(consumer->options.metrics->passed, 1);
        delivery_settle(delivery, NULL);
        return;
    }
    Pending *event = arena_zalloc(delivery->arena, sizeof *event);
    if (!read_event(consumer, delivery, tenant, type, event, &err)) {
        consumer_refuse(consumer, delivery, &err);
    } else if (event->input.kind == INPUT_PASSED) {
        metric_add(consumer->options.metrics->passed, 1);
        delivery_settle(delivery, NULL);
    } else {
        consumer_push_back(&consumer->waiting, event);
    }
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    Consumer *consumer = ctx;
    for (size_t i = 0; i < count; i++) {
        take_delivery(consumer, deliveries[i]);
    }
    start_batch(consumer);
}

static void keep_poison(void *ctx, BusMessage *message, Arena *arena)
{
    const Consumer *consumer = ctx;
    if (consumer->options.seals) {
        event_keep(consumer->options.event_keys, clock_mono_us(), message, arena);
    }
}

// ---- starting and stopping ----

Consumer *consumer_new(const ConsumerOptions *options)
{
    Consumer *consumer = xcalloc(1, sizeof *consumer);
    consumer->options = *options;
    consumer->batch_max = BATCH_MAX;
    WorkerOptions worker = {
        .consumer = topology_consumer("stentor-order-saga", "EVENTS"),
        .batch_max = BATCH_MAX,
        .in_flight_max = IN_FLIGHT_MAX,
        .stage = STAGE,
        .keep = keep_poison,
    };
    consumer->worker = worker_new(options->bus, &worker, on_worker_batch, consumer);
    worker_start(consumer->worker);
    return consumer;
}

static void on_worker_freed(void *ctx)
{
    Consumer *consumer = ctx;
    consumer->worker = NULL;
    consumer->on_stopped(consumer->stopped_ctx);
}

static void on_worker_stopped(void *ctx)
{
    Consumer *consumer = ctx;
    worker_free(consumer->worker, on_worker_freed, consumer);
}

void consumer_stop(Consumer *consumer, void (*on_stopped)(void *ctx), void *ctx)
{
    consumer->on_stopped = on_stopped;
    consumer->stopped_ctx = ctx;
    worker_stop(consumer->worker, on_worker_stopped, consumer);
}

void consumer_free(Consumer *consumer)
{
    free(consumer);
}
