// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/drain_state.h"
#include "tests/unit/common/base/states/states_walk.h"

// As drawn in drain_state.h.
static const StateRow ROWS[] = {
    [DRAIN_NEW] = {"new", "idle, ending"},
    [DRAIN_IDLE] = {"idle", "reading, scanning, adopting, putting a row aside, ending"},
    [DRAIN_READING] = {"reading", "idle, awaiting the last answer"},
    [DRAIN_SCANNING] = {"scanning", "idle, awaiting the last answer"},
    [DRAIN_ADOPTING] = {"adopting", "idle, awaiting the last answer"},
    [DRAIN_PUTTING_ASIDE] = {"putting a row aside", "idle, awaiting the last answer"},
    [DRAIN_LAST_ANSWER] = {"awaiting the last answer", "ending"},
    [DRAIN_ENDING] = {"ending", "stopped"},
    [DRAIN_STOPPED] = {"stopped", ""},
};

static bool move(unsigned *state, unsigned next)
{
    DrainState at = (DrainState)*state;
    bool moved = drain_state_move(&at, (DrainState)next, "relay-1");
    *state = at;
    return moved;
}

static void a_drain_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){ROWS, DRAIN_STATE_COUNT, move});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drain_moves_as_drawn_and_not_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
