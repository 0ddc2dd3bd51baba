// SPDX-License-Identifier: Apache-2.0
#include "common/orders/machine.h"

#include <assert.h>

// clang-format off
static const OrderStep steps[] = {
    // from             event                verdict            to               command           waits  reason
    {ORDER_NONE,      ORDER_CHECKED_OUT,   VERDICT_APPLIED,   ORDER_PLACED,    COMMAND_PLACE,    true,  ""},
    {ORDER_NONE,      ORDER_WAS_COMPLETED, VERDICT_UNMATCHED, ORDER_NONE,      COMMAND_NONE,     false, "the order has not been checked out yet"},
    {ORDER_NONE,      ORDER_WAS_CANCELLED, VERDICT_UNMATCHED, ORDER_NONE,      COMMAND_NONE,     false, "the order has not been checked out yet"},
    {ORDER_NONE,      ORDER_TIMED_OUT,     VERDICT_STALE,     ORDER_NONE,      COMMAND_NONE,     false, "there is no such order"},
    {ORDER_NONE,      ORDER_GAVE_UP,       VERDICT_STALE,     ORDER_NONE,      COMMAND_NONE,     false, "there is no such order"},
    {ORDER_NONE,      ORDER_OLD_WAIT,      VERDICT_STALE,     ORDER_NONE,      COMMAND_NONE,     false, "there is no such order"},

    {ORDER_PLACED,    ORDER_CHECKED_OUT,   VERDICT_DUPLICATE, ORDER_PLACED,    COMMAND_NONE,     false, "the order exists already"},
    {ORDER_PLACED,    ORDER_WAS_COMPLETED, VERDICT_APPLIED,   ORDER_COMPLETED, COMMAND_COMPLETE, false, ""},
    {ORDER_PLACED,    ORDER_WAS_CANCELLED, VERDICT_APPLIED,   ORDER_CANCELLED, COMMAND_CANCEL,   false, ""},
    {ORDER_PLACED,    ORDER_TIMED_OUT,     VERDICT_APPLIED,   ORDER_PLACED,    COMMAND_PLACE,    true,  ""},
    {ORDER_PLACED,    ORDER_GAVE_UP,       VERDICT_APPLIED,   ORDER_FAILED,    COMMAND_FAIL,     false, ""},
    {ORDER_PLACED,    ORDER_OLD_WAIT,      VERDICT_STALE,     ORDER_PLACED,    COMMAND_NONE,     false, "the order waits for another time-out"},

    {ORDER_COMPLETED, ORDER_CHECKED_OUT,   VERDICT_DUPLICATE, ORDER_COMPLETED, COMMAND_NONE,     false, "the order exists already"},
    {ORDER_COMPLETED, ORDER_WAS_COMPLETED, VERDICT_DUPLICATE, ORDER_COMPLETED, COMMAND_NONE,     false, "the order is completed already"},
    {ORDER_COMPLETED, ORDER_WAS_CANCELLED, VERDICT_CONFLICT,  ORDER_COMPLETED, COMMAND_NONE,     false, "a completed order cannot be cancelled"},
    {ORDER_COMPLETED, ORDER_TIMED_OUT,     VERDICT_STALE,     ORDER_COMPLETED, COMMAND_NONE,     false, "the order is completed"},
    {ORDER_COMPLETED, ORDER_GAVE_UP,       VERDICT_STALE,     ORDER_COMPLETED, COMMAND_NONE,     false, "the order is completed"},
    {ORDER_COMPLETED, ORDER_OLD_WAIT,      VERDICT_STALE,     ORDER_COMPLETED, COMMAND_NONE,     false, "the order is completed"},

    {ORDER_CANCELLED, ORDER_CHECKED_OUT,   VERDICT_DUPLICATE, ORDER_CANCELLED, COMMAND_NONE,     false, "the order exists already"},
    {ORDER_CANCELLED, ORDER_WAS_COMPLETED, VERDICT_CONFLICT,  ORDER_CANCELLED, COMMAND_NONE,     false, "a cancelled order cannot be completed"},
    {ORDER_CANCELLED, ORDER_WAS_CANCELLED, VERDICT_DUPLICATE, ORDER_CANCELLED, COMMAND_NONE,     false, "the order is cancelled already"},
    {ORDER_CANCELLED, ORDER_TIMED_OUT,     VERDICT_STALE,     ORDER_CANCELLED, COMMAND_NONE,     false, "the order is cancelled"},
    {ORDER_CANCELLED, ORDER_GAVE_UP,       VERDICT_STALE,     ORDER_CANCELLED, COMMAND_NONE,     false, "the order is cancelled"},
    {ORDER_CANCELLED, ORDER_OLD_WAIT,      VERDICT_STALE,     ORDER_CANCELLED, COMMAND_NONE,     false, "the order is cancelled"},

    {ORDER_FAILED,    ORDER_CHECKED_OUT,   VERDICT_DUPLICATE, ORDER_FAILED,    COMMAND_NONE,     false, "the order exists already"},
    {ORDER_FAILED,    ORDER_WAS_COMPLETED, VERDICT_CONFLICT,  ORDER_FAILED,    COMMAND_NONE,     false, "the order has failed: no status arrived within its attempts"},
    {ORDER_FAILED,    ORDER_WAS_CANCELLED, VERDICT_CONFLICT,  ORDER_FAILED,    COMMAND_NONE,     false, "the order has failed: no status arrived within its attempts"},
    {ORDER_FAILED,    ORDER_TIMED_OUT,     VERDICT_STALE,     ORDER_FAILED,    COMMAND_NONE,     false, "the order has failed"},
    {ORDER_FAILED,    ORDER_GAVE_UP,       VERDICT_STALE,     ORDER_FAILED,    COMMAND_NONE,     false, "the order has failed"},
    {ORDER_FAILED,    ORDER_OLD_WAIT,      VERDICT_STALE,     ORDER_FAILED,    COMMAND_NONE,     false, "the order has failed"},
};
// clang-format on

_Static_assert(
    sizeof steps / sizeof steps[0] == ORDER_STATE_COUNT * ORDER_EVENT_COUNT,
    "a row for every pair");

const OrderStep *machine_step(OrderState from, OrderEvent event)
{
    // The rows are in the order of their enumerations; machine_test.c walks them.
    const OrderStep *step = &steps[(size_t)from * ORDER_EVENT_COUNT + (size_t)event];
    assert(step->from == from && step->event == event);
    return step;
}

OrderEvent machine_timeout(bool is_current_wait, int32_t retries, int64_t max_attempts)
{
    if (!is_current_wait) {
        return ORDER_OLD_WAIT;
    }
    return retries + INT64_C(1) < max_attempts ? ORDER_TIMED_OUT : ORDER_GAVE_UP;
}

const char *order_state_name(OrderState state)
{
    switch (state) {
    case ORDER_PLACED:
        return "Placed";
    case ORDER_COMPLETED:
        return "Completed";
    case ORDER_CANCELLED:
        return "Cancelled";
    case ORDER_FAILED:
        return "Failed";
    case ORDER_NONE:
    case ORDER_STATE_COUNT:
        break;
    }
    return "";
}

bool order_state_from_name(Str name, OrderState *ret)
{
    for (OrderState state = ORDER_PLACED; state < ORDER_STATE_COUNT; state++) {
        if (str_eq(name, str_from(order_state_name(state)))) {
            *ret = state;
            return true;
        }
    }
    return false;
}

const char *verdict_name(Verdict verdict)
{
    switch (verdict) {
    case VERDICT_APPLIED:
        return "applied";
    case VERDICT_CONFLICT:
        return "conflict";
    case VERDICT_STALE:
        return "stale";
    case VERDICT_UNMATCHED:
        return "unmatched";
    case VERDICT_DUPLICATE:
        return "duplicate";
    case VERDICT_COUNT:
        break;
    }
    return "";
}

const char *command_name(OrderCommand command)
{
    switch (command) {
    case COMMAND_PLACE:
        return "PlaceOrder";
    case COMMAND_COMPLETE:
        return "CompleteOrder";
    case COMMAND_CANCEL:
        return "CancelOrder";
    case COMMAND_FAIL:
        return "OrderFailed";
    case COMMAND_NONE:
    case COMMAND_COUNT:
        break;
    }
    return "";
}
