// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/worker_state.h"

#include "common/base/states/states.h"

// clang-format off
static const uint32_t moves[WORKER_STATE_COUNT] = {
    [WORKER_NEW]      = STATE_BIT(WORKER_RUNNING) | STATE_BIT(WORKER_STOPPING) | STATE_BIT(WORKER_FREEING),
    [WORKER_RUNNING]  = STATE_BIT(WORKER_STOPPING) | STATE_BIT(WORKER_FREEING),
    [WORKER_STOPPING] = STATE_BIT(WORKER_STOPPED) | STATE_BIT(WORKER_FREEING),
    [WORKER_STOPPED]  = STATE_BIT(WORKER_FREEING),
    [WORKER_FREEING]  = STATE_BIT(WORKER_LEAVING),
    [WORKER_LEAVING]  = 0,
};
static const char *const names[WORKER_STATE_COUNT] = {
    [WORKER_NEW] = "new", [WORKER_RUNNING] = "running", [WORKER_STOPPING] = "stopping", [WORKER_STOPPED] = "stopped",
    [WORKER_FREEING] = "freeing", [WORKER_LEAVING] = "leaving",
};
static const States states = {"worker", names, moves, WORKER_STATE_COUNT};

static const uint32_t consumer_moves[CONSUMER_STATE_COUNT] = {
    [CONSUMER_UNKNOWN]     = STATE_BIT(CONSUMER_ASKED),
    [CONSUMER_ASKED]       = STATE_BIT(CONSUMER_UNKNOWN) | STATE_BIT(CONSUMER_MISSING) | STATE_BIT(CONSUMER_KNOWN),
    [CONSUMER_MISSING]     = STATE_BIT(CONSUMER_ASKED_AGAIN),
    [CONSUMER_ASKED_AGAIN] = STATE_BIT(CONSUMER_MISSING) | STATE_BIT(CONSUMER_KNOWN),
    [CONSUMER_KNOWN]       = 0,
};
static const char *const consumer_names[CONSUMER_STATE_COUNT] = {
    [CONSUMER_UNKNOWN] = "unknown", [CONSUMER_ASKED] = "asked", [CONSUMER_MISSING] = "missing",
    [CONSUMER_ASKED_AGAIN] = "asked again", [CONSUMER_KNOWN] = "known",
};
static const States consumer_states = {"worker consumer", consumer_names, consumer_moves, CONSUMER_STATE_COUNT};
// clang-format on

bool worker_state_move(WorkerState *state, WorkerState next, const char *consumer)
{
    if (!states_step(&states, *state, next, str_from(consumer))) {
        return false;
    }
    *state = next;
    return true;
}

bool worker_consumer_move(WorkerConsumer *state, WorkerConsumer next, const char *consumer)
{
    if (!states_step(&consumer_states, *state, next, str_from(consumer))) {
        return false;
    }
    *state = next;
    return true;
}
