// SPDX-License-Identifier: Apache-2.0
// Applies a batch of events to its orders: a fold in memory, several events of one order in their
// order, each order written once. Pure: no I/O, no clock.
//
// Law: an event counts once, by its message id. Events that arrive before their order wait in the
// table and are applied after its UserCheckedOut, in the order of the stream.
#pragma once

#include "common/base/map.h"
#include "common/codec/hash.h"
#include "common/domain/event_seal.h"
#include "common/orders/input.h"
#include "common/orders/machine.h"

typedef struct Order Order;

// One message of the batch, or one of the table that waited for its order.
typedef struct Entry {
    const SagaInput *input;
    Order *order;
    Verdict verdict;
    const char *reason; // for operators; static, or in the batch's arena
    OrderState from, to;
    int32_t times; // deliveries in this batch; 0: it comes from the table
    bool is_known; // the table has it as consumed
    bool is_decided;
    struct Entry *next; // of those that wait for their order
} Entry;

typedef struct Command {
    Order *order;
    OrderCommand command; // COMMAND_NONE: a time-out starts
    const SagaInput *cause;
    int32_t retries;          // timeout_retry_count when it was written
    int64_t happened_at_us;   // the same for a repeat
    char token_id[UUID_SIZE]; // of the time-out
} Command;

struct Order {
    Str tenant;
    char correlation_id[UUID_SIZE];
    // The order's row in the table.
    OrderState state;
    int32_t version;
    char order_id[UUID_SIZE];
    char basket_id[UUID_SIZE];
    char token_id[UUID_SIZE];
    int32_t retries;
    bool has_total;
    int64_t total_micros;
    char currency[CURRENCY_SIZE];
    int64_t placed_at_us;
    int64_t finished_at_us; // 0: not yet
    Str recipient;          // a packed Sealed; empty: not sealed yet
    uint8_t email_hash[ADDRESS_HASH_LEN];
    // Of the batch.
    int32_t expected;    // the version that was read; 0: it was not there
    int64_t wait_due_us; // of the time-out that starts
    bool is_archived;
    size_t unmatched;        // of its events in the table, as read
    Entry *waiting;          // in the order of their sequences
    const SagaInput *wanted; // its first UserCheckedOut in the batch
    Order *merged_into;      // known by its order id: its events are that one's; NULL: it is itself
    const SagaInput *checked_out; // that made it in this batch
    bool is_lost;                 // another process wrote it first: decide again
    size_t number;                // 1 ...
};

typedef struct Fold {
    Arena *arena;
    int64_t now_us;
    bool at_events; // now is when each event was stored: the same however late it is folded
    int64_t max_attempts;
    Map *entries; // by tenant and message id
    Map *orders;  // by tenant and correlation id
    Entry **entry_list;
    size_t entry_count;
    Order **order_list;
    size_t order_count;
    Command *commands;
    size_t command_count;
    size_t capacity; // of the lists
    // For the metrics.
    size_t retried;
    // What events that wait for their order are sealed with and opened; NULL: they are in clear.
    EventKeys *event_keys;
    bool seals; // event_keys_ready() has said so
    int64_t mono_us;
    size_t waiting_unreadable; // of the table: their key is gone, or they are malformed
    Error waiting_error;       // of the last one
} Fold;

// Room for `deliveries` messages; entries of the tables need none.
void fold_init(Fold *fold, Arena *arena, size_t deliveries, int64_t now_us, int64_t max_attempts);
void fold_done(Fold *fold);
// An event of the batch, in the stream's order. The same message twice is one entry.
Entry *fold_add(Fold *fold, const SagaInput *input);
// `order` has been read; its correlation id is this one (an event may know its order id alone).
void fold_is_really(Fold *fold, Order *order, Str correlation_id);
// When all are read: assigns events by order id to an order whose UserCheckedOut is in this batch
// and not in the tables.
void fold_match(Fold *fold);
// An event of the table that waits for its order; in the order of their sequences. Before fold_run.
void fold_add_waiting(Fold *fold, Order *order, const SagaInput *input);
// Decides every entry. Once.
void fold_run(Fold *fold);

bool order_is_changed(const Order *order);
// Is this the time-out with which the order failed, now or at an earlier delivery of it?
bool order_failed_by(const Order *order, const SagaInput *input);
