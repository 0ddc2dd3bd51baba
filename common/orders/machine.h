// SPDX-License-Identifier: Apache-2.0
// The order's state machine: one table, from state and event to verdict, next state and command.
// Pure.
//
// Law: every pair of state and event has exactly one row. An unexpected event changes nothing: it
// is a conflict (contradicts the state), a duplicate (repeats it), stale (a time-out that no longer
// counts) or unmatched (its order does not exist yet).
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
    ORDER_TIMED_OUT,     // the order's time-out, and an attempt is left
    ORDER_GAVE_UP,       // the order's time-out, and no attempt is left
    ORDER_OLD_WAIT,      // a time-out that is not the order's current one
    ORDER_EVENT_COUNT
} OrderEvent;

typedef enum OrderCommand {
    COMMAND_NONE,
    COMMAND_PLACE,
    COMMAND_COMPLETE,
    COMMAND_CANCEL,
    COMMAND_FAIL, // an event that says so, not a command to a service
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
    bool waits;         // a time-out starts
    const char *reason; // for operators; of an event that was not applied
} OrderStep;

// The row of a pair; static.
const OrderStep *machine_step(OrderState from, OrderEvent event);
// Which event a time-out is. retries: timeout_retry_count before it; the order has failed when the
// count reaches max_attempts with it.
OrderEvent machine_timeout(bool is_current_wait, int32_t retries, int64_t max_attempts);

const char *order_state_name(OrderState state);        // "Placed"; of ORDER_NONE ""
bool order_state_from_name(Str name, OrderState *ret); // not of ORDER_NONE
const char *verdict_name(Verdict verdict);             // "applied"
const char *command_name(OrderCommand command);        // "PlaceOrder": the event's type; else ""
