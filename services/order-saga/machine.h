// SPDX-License-Identifier: Apache-2.0
// The order's state machine: one table, from state and event to verdict, next state and command.
// Pure.
//
// Law: every pair of state and event has exactly one row. What is not expected changes nothing: it
// is a conflict (it contradicts what is known), a duplicate (it says what is known), stale (a wait
// that is over anyway) or unmatched (its order is not there yet).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/str.h"

typedef enum OrderState {
    ORDER_NONE, // there is no such order
    ORDER_PLACED,
    ORDER_COMPLETED,
    ORDER_CANCELLED,
    ORDER_FAILED,
    ORDER_STATE_COUNT
} OrderState;

typedef enum OrderEvent {
    ORDER_CHECKED_OUT,   // UserCheckedOut
    ORDER_WAS_COMPLETED, // StatusChanged: Completed
    ORDER_WAS_CANCELLED, // StatusChanged: Cancelled
    ORDER_TIMED_OUT,     // the order's wait is over, and an attempt is left
    ORDER_GAVE_UP,       // it is over, and none is left
    ORDER_OLD_WAIT,      // a wait is over that is not the order's any more
    ORDER_EVENT_COUNT
} OrderEvent;

typedef enum OrderCommand {
    COMMAND_NONE,
    COMMAND_PLACE,
    COMMAND_COMPLETE,
    COMMAND_CANCEL,
    COMMAND_COUNT
} OrderCommand;

typedef enum Verdict {
    VERDICT_APPLIED,
    VERDICT_CONFLICT,
    VERDICT_STALE,
    VERDICT_UNMATCHED,
    VERDICT_DUPLICATE,
    VERDICT_COUNT
} Verdict;

typedef struct OrderStep {
    OrderState from;
    OrderEvent event;
    Verdict verdict;
    OrderState to; // of an applied one; else `from`
    OrderCommand command;
    bool waits;         // a time-out begins
    const char *reason; // for a person; of what was not applied
} OrderStep;

// The row of a pair; static.
const OrderStep *machine_step(OrderState from, OrderEvent event);
// Which event the end of a wait is. retries: timeout_retry_count before it; the order gives up when
// that reaches max_attempts with it.
OrderEvent machine_timeout(bool is_current_wait, int32_t retries, int64_t max_attempts);

const char *order_state_name(OrderState state);        // "Placed"; of ORDER_NONE ""
bool order_state_from_name(Str name, OrderState *ret); // not of ORDER_NONE
const char *verdict_name(Verdict verdict);             // "applied"
const char *command_name(OrderCommand command);        // "PlaceOrder": the event's type; else ""
