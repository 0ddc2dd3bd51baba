// SPDX-License-Identifier: Apache-2.0
#include "common/orders/order_rebuild.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/orders/saga_sql.h"

enum {
    TAKEN_FIRST = 2 * ORDER_REBUILD_BATCH,
    WAIT_US = 300 * 1000 * 1000, // STENTOR_SAGA_RETRY_TIMEOUT_MS by default; a lost one comes later
};

typedef struct Taken {
    Arena *arena;
    const SagaInput **inputs;
    size_t count, cap;
} Taken;

struct OrderRebuild {
    OrderRebuildOptions options;
    DbSchemaCopy *copy;
    Taken batches[2];
    Taken *taking, *writing;
    size_t from, to; // of what is written, the part in hand
    Fold fold;
    KeyWant *wants;
    Order **wanting; // of each want
    size_t want_count;
    void (*done)(void *ctx, const Error *err);
    void *ctx;
    uint64_t events, unreadable;
};

OrderRebuild *order_rebuild_new(const OrderRebuildOptions *options)
{
    OrderRebuild *rebuild = xcalloc(1, sizeof *rebuild);
    rebuild->options = *options;
    rebuild->copy = db_schema_copy_new(options->schema, options->copy);
    rebuild->batches[0].arena = arena_new(0);
    rebuild->batches[1].arena = arena_new(0);
    rebuild->taking = &rebuild->batches[0];
    rebuild->writing = &rebuild->batches[1];
    return rebuild;
}

void order_rebuild_free(OrderRebuild *rebuild)
{
    if (rebuild != NULL) {
        for (size_t i = 0; i < 2; i++) {
            arena_free(rebuild->batches[i].arena);
            free(rebuild->batches[i].inputs);
        }
        db_schema_copy_free(rebuild->copy);
        free(rebuild);
    }
}

uint64_t order_rebuild_events(const OrderRebuild *rebuild)
{
    return rebuild->events;
}

uint64_t order_rebuild_unreadable(const OrderRebuild *rebuild)
{
    return rebuild->unreadable;
}

// ---- taking ----

void order_rebuild_take(OrderRebuild *rebuild, const BusMessage *message)
{
    Taken *taken = rebuild->taking;
    Str tenant = STR_EMPTY;
    Str type = STR_EMPTY;
    Error err = {0};
    if (!domain_subject(message->subject, &tenant, &type) || !saga_input_wants(type)) {
        return;
    }
    BusMessage opened = *message;
    SagaInput *input = arena_zalloc(taken->arena, sizeof *input);
    tenant = arena_str(taken->arena, tenant);
    type = arena_str(taken->arena, type);
    if (!event_open(rebuild->options.event_keys, clock_mono_us(), &opened, taken->arena, &err) ||
        !saga_message_read(&opened, tenant, type, taken->arena, input, &err)) {
        rebuild->unreadable++;
        return;
    }
    if (input->kind != INPUT_PASSED) {
        if (taken->count == taken->cap) {
            taken->cap = taken->cap == 0 ? TAKEN_FIRST : 2 * taken->cap;
            taken->inputs = xrealloc(taken->inputs, taken->cap * sizeof *taken->inputs);
        }
        input->traceparent = STR_EMPTY;
        taken->inputs[taken->count++] = input;
    }
}

bool order_rebuild_has_taken(const OrderRebuild *rebuild)
{
    return rebuild->taking->count > 0;
}

// ---- writing, from the last step to the first ----

static void write_part(OrderRebuild *rebuild, size_t from);

static void end_write(OrderRebuild *rebuild, const Error *err)
{
    fold_done(&rebuild->fold);
    if (err == NULL && rebuild->to < rebuild->writing->count) {
        write_part(rebuild, rebuild->to);
        return;
    }
    rebuild->writing->count = 0;
    arena_reset(rebuild->writing->arena);
    rebuild->done(rebuild->ctx, err);
}

static void on_db_stored(void *ctx, DbTxn *txn, const Error *err)
{
    OrderRebuild *rebuild = ctx;
    Error lost = {0};
    if (err != NULL) {
        end_write(rebuild, err);
        return;
    }
    saga_sql_stored(txn, &rebuild->fold, NULL, 0);
    for (size_t i = 0; i < rebuild->fold.order_count; i++) {
        const Order *order = rebuild->fold.order_list[i];
        if (order->is_lost) {
            error_set(
                &lost, ERROR_CONFLICT, "another process writes order '%s' of the copy",
                order->correlation_id);
            end_write(rebuild, &lost);
            return;
        }
    }
    end_write(rebuild, NULL);
}

static void store(OrderRebuild *rebuild)
{
    Fold *fold = &rebuild->fold;
    for (size_t i = 0; i < fold->command_count; i++) {
        const Command *command = &fold->commands[i];
        if (command->command == COMMAND_NONE) {
            command->order->wait_due_us = command->cause->received_at_us + WAIT_US;
        }
    }
    DbTxn *txn = db_txn_new(rebuild->options.pool);
    db_txn_schema(txn, rebuild->copy);
    saga_sql_store(txn, fold, NULL, 0);
    db_txn_submit(txn, on_db_stored, rebuild);
}

// Whoever has no key any more is erased: the order goes on, and nothing of them comes back.
static void seal_order(OrderRebuild *rebuild, Order *order, DataKey *key)
{
    const SagaInput *from = order->checked_out;
    HashKeys keys = master_hash_keys(keyring_master(rebuild->options.keyring));
    address_hash(keys.keys[0], order->tenant, CHANNEL_EMAIL, from->email, order->email_hash);
    if (key != NULL) {
        Recipient recipient = recipient_of(from);
        order->recipient = recipient_seal(key, order, &recipient, rebuild->writing->arena);
    }
}

static void on_keyring_done(void *ctx, const Error *err)
{
    OrderRebuild *rebuild = ctx;
    if (err != NULL) {
        end_write(rebuild, err);
        return;
    }
    for (size_t i = 0; i < rebuild->want_count; i++) {
        seal_order(rebuild, rebuild->wanting[i], rebuild->wants[i].key);
    }
    store(rebuild);
}

static void seal_new(OrderRebuild *rebuild)
{
    Fold *fold = &rebuild->fold;
    Arena *arena = rebuild->writing->arena;
    rebuild->wants = arena_array(arena, fold->order_count, sizeof(KeyWant));
    rebuild->wanting = arena_array(arena, fold->order_count, sizeof(Order *));
    rebuild->want_count = 0;
    for (size_t i = 0; i < fold->order_count; i++) {
        Order *order = fold->order_list[i];
        if (order->checked_out != NULL) {
            rebuild->wanting[rebuild->want_count] = order;
            rebuild->wants[rebuild->want_count++] = keyring_want_address(
                rebuild->options.keyring, DATA_KEY_RECORD, order->tenant, CHANNEL_EMAIL,
                order->checked_out->email);
        }
    }
    keyring_resolve(
        rebuild->options.keyring, rebuild->wants, rebuild->want_count, on_keyring_done, rebuild);
}

static void on_db_loaded(void *ctx, DbTxn *txn, const Error *err)
{
    OrderRebuild *rebuild = ctx;
    if (err != NULL) {
        end_write(rebuild, err);
        return;
    }
    saga_sql_loaded(txn, &rebuild->fold);
    fold_run(&rebuild->fold);
    if (rebuild->options.keyring != NULL) {
        seal_new(rebuild);
    } else {
        store(rebuild);
    }
}

// ---- which of them the live tables hold ----

static const DbStatement find_consumed = {
    .name = "order_rebuild_consumed",
    .sql = "SELECT i.m FROM unnest($1::int4[], $2::text[], $3::text[]) AS i (m, tenant_id, id)"
           " JOIN order_saga.consumed c ON c.message_id = i.id AND c.tenant_id = i.tenant_id"
           " ORDER BY i.m"};

static void on_db_asked(void *ctx, DbTxn *txn, const Error *err)
{
    OrderRebuild *rebuild = ctx;
    Taken *taken = rebuild->writing;
    fold_init(
        &rebuild->fold, taken->arena, rebuild->to - rebuild->from, 0,
        rebuild->options.max_attempts);
    rebuild->fold.event_keys = rebuild->options.event_keys;
    rebuild->fold.mono_us = clock_mono_us();
    rebuild->fold.seals = event_keys_ready(rebuild->fold.event_keys, rebuild->fold.mono_us, NULL);
    rebuild->fold.at_events = true;
    if (err != NULL) {
        end_write(rebuild, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int row = 0;
    for (size_t i = rebuild->from; i < rebuild->to; i++) {
        const SagaInput *input = taken->inputs[i];
        bool held = row < db_rows(rows) && db_get_int(rows, row, 0) == (int64_t)i;
        row += held ? 1 : 0;
        if (held || input->sequence <= rebuild->options.settled) {
            (void)fold_add(&rebuild->fold, input);
            rebuild->events++;
        }
    }
    DbTxn *load = db_txn_new(rebuild->options.pool);
    db_txn_schema(load, rebuild->copy);
    saga_sql_load(load, &rebuild->fold);
    db_txn_submit(load, on_db_loaded, rebuild);
}

static void write_part(OrderRebuild *rebuild, size_t from)
{
    const Taken *taken = rebuild->writing;
    rebuild->from = from;
    rebuild->to = taken->count - from > TAKEN_FIRST ? from + TAKEN_FIRST : taken->count;
    DbTxn *txn = db_txn_new(rebuild->options.pool);
    db_txn_schema(txn, rebuild->copy);
    DbParams *p = db_txn_add(txn, &find_consumed, NULL);
    DbArray *numbers = db_array(p, DB_I32);
    DbArray *tenants = db_array(p, DB_TEXT);
    DbArray *ids = db_array(p, DB_TEXT);
    for (size_t i = from; i < rebuild->to; i++) {
        if (taken->inputs[i]->sequence > rebuild->options.settled) {
            db_push_int(numbers, (int64_t)i);
            db_push_text(tenants, taken->inputs[i]->tenant);
            db_push_text(ids, taken->inputs[i]->message_id);
        }
    }
    db_txn_submit(txn, on_db_asked, rebuild);
}

void order_rebuild_write(
    OrderRebuild *rebuild, void (*done)(void *ctx, const Error *err), void *ctx)
{
    Taken *taken = rebuild->taking;
    rebuild->taking = rebuild->writing;
    rebuild->writing = taken;
    rebuild->done = done;
    rebuild->ctx = ctx;
    write_part(rebuild, 0);
}
