// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/worker_state.h"
#include "tests/unit/common/base/states/states_walk.h"

// As drawn in worker_state.h.
static const StateRow STATES[] = {
    [WORKER_NEW] = {"new", "running, stopping, freeing"},
    [WORKER_RUNNING] = {"running", "stopping, freeing"},
    [WORKER_STOPPING] = {"stopping", "stopped, freeing"},
    [WORKER_STOPPED] = {"stopped", "freeing"},
    [WORKER_FREEING] = {"freeing", "leaving"},
    [WORKER_LEAVING] = {"leaving", ""},
};

static const StateRow CONSUMER[] = {
    [CONSUMER_UNKNOWN] = {"unknown", "asked"},
    [CONSUMER_ASKED] = {"asked", "unknown, known, missing"},
    [CONSUMER_MISSING] = {"missing", "asked again"},
    [CONSUMER_ASKED_AGAIN] = {"asked again", "missing, known"},
    [CONSUMER_KNOWN] = {"known", ""},
};

static bool move_state(unsigned *state, unsigned next)
{
    WorkerState at = (WorkerState)*state;
    bool moved = worker_state_move(&at, (WorkerState)next, "stentor-renderer");
    *state = at;
    return moved;
}

static bool move_consumer(unsigned *state, unsigned next)
{
    WorkerConsumer at = (WorkerConsumer)*state;
    bool moved = worker_consumer_move(&at, (WorkerConsumer)next, "stentor-renderer");
    *state = at;
    return moved;
}

static void a_worker_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){STATES, WORKER_STATE_COUNT, move_state});
}

static void what_is_known_of_its_consumer_moves_as_drawn(void **state)
{
    (void)state;
    states_walk(&(StateWalk){CONSUMER, CONSUMER_STATE_COUNT, move_consumer});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_moves_as_drawn_and_not_otherwise),
        cmocka_unit_test(what_is_known_of_its_consumer_moves_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
