// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/reader_state.h"
#include "tests/unit/common/base/states/states_walk.h"

// As drawn in reader_state.h.
static const StateRow STATES[] = {
    [READER_WAITING] = {"waiting", "asking, freeing"},
    [READER_ASKING] = {"asking", "creating, creating at last, waiting, failed, freeing"},
    [READER_CREATING] = {"creating", "reading, waiting, failed, freeing"},
    [READER_CREATING_AT_LAST] = {"creating at last", "checking, waiting, failed, freeing"},
    [READER_CHECKING] = {"checking", "reading, waiting, failed, freeing"},
    [READER_READING] = {"reading", "waiting, freeing"},
    [READER_FAILED] = {"failed", "freeing"},
    [READER_FREEING] = {"freeing", ""},
};

static const StateRow PROGRESS[] = {
    [READER_NOT_BEGUN] = {"not begun", "behind, caught up"},
    [READER_BEHIND] = {"behind", "caught up"},
    [READER_CAUGHT_UP] = {"caught up", "reported"},
    [READER_REPORTED] = {"reported", ""},
};

static bool move_state(unsigned *state, unsigned next)
{
    ReaderState at = (ReaderState)*state;
    bool moved = reader_state_move(&at, (ReaderState)next, "STATUS");
    *state = at;
    return moved;
}

static bool move_progress(unsigned *state, unsigned next)
{
    ReaderProgress at = (ReaderProgress)*state;
    bool moved = reader_progress_move(&at, (ReaderProgress)next, "STATUS");
    *state = at;
    return moved;
}

static void a_reader_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){STATES, READER_STATE_COUNT, move_state});
}

static void its_progress_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){PROGRESS, READER_PROGRESS_COUNT, move_progress});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_moves_as_drawn_and_not_otherwise),
        cmocka_unit_test(its_progress_moves_as_drawn_and_not_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
