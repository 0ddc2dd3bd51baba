// SPDX-License-Identifier: Apache-2.0
#include "common/orders/order.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { COMMANDS_PER_ENTRY = 2 }; // PlaceOrder and its wait

void fold_init(Fold *fold, Arena *arena, size_t deliveries, int64_t now_us, int64_t max_attempts)
{
    *fold = (Fold){
        .arena = arena,
        .now_us = now_us,
        .max_attempts = max_attempts,
        .entries = map_new(NULL),
        .orders = map_new(NULL),
        .entry_list = arena_array(arena, deliveries, sizeof(Entry *)),
        .order_list = arena_array(arena, deliveries, sizeof(Order *)),
        .capacity = deliveries,
    };
}

void fold_done(Fold *fold)
{
    map_free(fold->entries);
    map_free(fold->orders);
}

// ---- gathering ----

static Str key_of(Fold *fold, Str tenant, Str id)
{
    return str_from(arena_printf(fold->arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(id)));
}

static Order *order_of(Fold *fold, const SagaInput *input)
{
    Str key = key_of(fold, input->tenant, str_from(input->correlation_id));
    Order *order = map_get(fold->orders, key);
    if (order == NULL) {
        order = arena_zalloc(fold->arena, sizeof *order);
        order->tenant = input->tenant;
        memcpy(order->correlation_id, input->correlation_id, UUID_SIZE);
        map_put(fold->orders, key, order);
        fold->order_list[fold->order_count++] = order;
        order->number = fold->order_count;
    }
    return order;
}

static Entry *new_entry(Fold *fold, const SagaInput *input, Order *order)
{
    Entry *entry = arena_zalloc(fold->arena, sizeof *entry);
    entry->input = input;
    entry->order = order;
    entry->reason = "";
    map_put(fold->entries, key_of(fold, input->tenant, input->message_id), entry);
    return entry;
}

Entry *fold_add(Fold *fold, const SagaInput *input)
{
    Entry *entry = map_get(fold->entries, key_of(fold, input->tenant, input->message_id));
    if (entry == NULL) {
        assert(fold->entry_count < fold->capacity);
        entry = new_entry(fold, input, order_of(fold, input));
        fold->entry_list[fold->entry_count++] = entry;
        if (entry->order->wanted == NULL && input->kind == INPUT_CHECKED_OUT) {
            entry->order->wanted = input;
        }
    }
    entry->times++;
    return entry;
}

// The events of `alias` become those of `order`.
static void merge(Fold *fold, Order *alias, Order *order)
{
    for (size_t i = 0; i < fold->entry_count; i++) {
        if (fold->entry_list[i]->order == alias) {
            fold->entry_list[i]->order = order;
        }
    }
    order->wanted = order->wanted == NULL ? alias->wanted : order->wanted;
    alias->wanted = NULL;
    alias->merged_into = order;
    alias->version = alias->expected = 0;
}

void fold_is_really(Fold *fold, Order *order, Str correlation_id)
{
    if (str_eq(str_from(order->correlation_id), correlation_id)) {
        return;
    }
    Str key = key_of(fold, order->tenant, correlation_id);
    Order *other = map_get(fold->orders, key);
    if (other != NULL) {
        merge(fold, order, other);
        return;
    }
    (void)str_to_c(correlation_id, order->correlation_id, sizeof order->correlation_id);
    map_put(fold->orders, key, order);
}

void fold_match(Fold *fold)
{
    Map *wanted = map_new(NULL); // by tenant and order id
    for (size_t i = 0; i < fold->order_count; i++) {
        Order *order = fold->order_list[i];
        if (order->wanted != NULL) {
            map_put(wanted, key_of(fold, order->tenant, str_from(order->wanted->order_id)), order);
        }
    }
    for (size_t i = 0; i < fold->order_count; i++) {
        Order *order = fold->order_list[i];
        bool unknown =
            order->state == ORDER_NONE && order->wanted == NULL && order->merged_into == NULL;
        Order *other =
            unknown ? map_get(wanted, key_of(fold, order->tenant, str_from(order->correlation_id)))
                    : NULL;
        if (other != NULL) {
            merge(fold, order, other);
        }
    }
    map_free(wanted);
}

static void append_waiting(Order *order, Entry *entry)
{
    Entry **end = &order->waiting;
    while (*end != NULL && (*end)->input->sequence <= entry->input->sequence) {
        end = &(*end)->next;
    }
    entry->next = *end;
    *end = entry;
}

// It may also be redelivered in this batch: then it is that entry.
void fold_add_waiting(Fold *fold, Order *order, const SagaInput *input)
{
    Entry *entry = map_get(fold->entries, key_of(fold, input->tenant, input->message_id));
    order->unmatched++;
    if (entry == NULL) {
        append_waiting(order, new_entry(fold, input, order));
    }
}

// ---- deciding ----

static Command *add_command(Fold *fold, Order *order, OrderCommand command, const SagaInput *cause)
{
    Command *out = &fold->commands[fold->command_count++];
    *out = (Command){
        .order = order,
        .command = command,
        .cause = cause,
        .retries = order->retries,
        .happened_at_us = command == COMMAND_PLACE || command == COMMAND_NONE
                              ? order->placed_at_us
                              : order->finished_at_us,
    };
    return out;
}

// The token of the n-th time-out is always the same, so deciding again changes nothing.
static void derive_token(const Order *order, int32_t number, char out[UUID_SIZE])
{
    char name[128]; // a tenant has 32 bytes, an order 36
    (void)snprintf(
        name, sizeof name, "wait|" STR_FMT "|%s|%d", STR_ARG(order->tenant), order->correlation_id,
        (int)number);
    uuid_derive(str_from(name), out);
}

static void begin_wait(Fold *fold, Order *order, const SagaInput *cause)
{
    derive_token(order, order->retries, order->token_id);
    Command *wait = add_command(fold, order, COMMAND_NONE, cause);
    memcpy(wait->token_id, order->token_id, UUID_SIZE);
}

static void place(Order *order, const SagaInput *input)
{
    memcpy(order->order_id, input->order_id, UUID_SIZE);
    memcpy(order->basket_id, input->basket_id, UUID_SIZE);
    memcpy(order->currency, input->currency, CURRENCY_SIZE);
    order->has_total = input->has_total;
    order->total_micros = input->total_micros;
    order->placed_at_us = input->happened_at_us;
    order->checked_out = input;
}

static OrderEvent event_of(const Fold *fold, const Order *order, const SagaInput *input)
{
    bool is_current = order->token_id[0] != '\0' && strcmp(order->token_id, input->token_id) == 0;
    switch (input->kind) {
    case INPUT_CHECKED_OUT:
        return ORDER_CHECKED_OUT;
    case INPUT_COMPLETED:
        return ORDER_WAS_COMPLETED;
    case INPUT_CANCELLED:
        return ORDER_WAS_CANCELLED;
    case INPUT_TIMEOUT:
    case INPUT_PASSED:
        break;
    }
    return machine_timeout(is_current, order->retries, fold->max_attempts);
}

// The only writer of an order's state.
static void move(Fold *fold, Order *order, const SagaInput *input, const OrderStep *step)
{
    if (step->event == ORDER_CHECKED_OUT) {
        place(order, input);
    }
    if (step->event == ORDER_TIMED_OUT || step->event == ORDER_GAVE_UP) {
        order->retries++;
        fold->retried += step->event == ORDER_TIMED_OUT ? 1 : 0;
    }
    order->state = step->to;
    order->version++;
    order->token_id[0] = '\0';
    order->finished_at_us = step->to == ORDER_PLACED ? 0 : fold->now_us;
    if (step->command != COMMAND_NONE) {
        (void)add_command(fold, order, step->command, input);
    }
    if (step->waits) {
        begin_wait(fold, order, input);
    }
}

static void decide(Fold *fold, Entry *entry);

static void decide_waiting(Fold *fold, Order *order)
{
    Entry *entry = order->waiting;
    order->waiting = NULL;
    while (entry != NULL) {
        Entry *next = entry->next;
        entry->is_decided = false;
        decide(fold, entry);
        entry = next;
    }
}

static void apply(Fold *fold, Entry *entry)
{
    Order *order = entry->order;
    const OrderStep *step = machine_step(order->state, event_of(fold, order, entry->input));
    entry->verdict = step->verdict;
    entry->reason = step->reason;
    entry->to = step->to;
    if (step->verdict == VERDICT_APPLIED) {
        move(fold, order, entry->input, step);
    } else if (step->verdict == VERDICT_UNMATCHED) {
        append_waiting(order, entry);
    }
}

static void decide(Fold *fold, Entry *entry)
{
    Order *order = entry->order;
    entry->is_decided = true;
    entry->from = entry->to = order->state;
    if (entry->is_known) {
        entry->verdict = VERDICT_DUPLICATE;
        entry->reason = "the message was consumed before";
    } else if (order->is_archived) {
        entry->verdict = VERDICT_CONFLICT;
        entry->reason = "the order is archived";
    } else {
        apply(fold, entry);
    }
    if (entry->input->kind == INPUT_CHECKED_OUT && order->state != ORDER_NONE) {
        decide_waiting(fold, order);
    }
}

void fold_run(Fold *fold)
{
    size_t waiting = 0;
    for (size_t i = 0; i < fold->order_count; i++) {
        waiting += fold->order_list[i]->unmatched;
    }
    size_t most = fold->entry_count + waiting;
    fold->commands = arena_array(fold->arena, most * COMMANDS_PER_ENTRY, sizeof(Command));
    size_t count = fold->entry_count;
    for (size_t i = 0; i < count; i++) {
        if (!fold->entry_list[i]->is_decided) {
            int64_t stored_us = fold->entry_list[i]->input->received_at_us;
            fold->now_us = fold->at_events ? stored_us : fold->now_us;
            decide(fold, fold->entry_list[i]);
        }
    }
    // Entries of the table are written too, once they are decided.
    Entry **all = arena_array(fold->arena, most, sizeof(Entry *));
    memcpy(all, fold->entry_list, count * sizeof(Entry *));
    Str key;
    void *value = NULL;
    for (size_t at = 0; map_next(fold->entries, &at, &key, &value);) {
        Entry *entry = value;
        if (entry->times == 0 && entry->is_decided) {
            all[fold->entry_count++] = entry;
        }
    }
    fold->entry_list = all;
}

bool order_failed_by(const Order *order, const SagaInput *input)
{
    char last[UUID_SIZE];
    if (input->kind != INPUT_TIMEOUT || order->state != ORDER_FAILED) {
        return false;
    }
    derive_token(order, order->retries - 1, last);
    return strcmp(last, input->token_id) == 0;
}

bool order_is_changed(const Order *order)
{
    return order->version != order->expected;
}
