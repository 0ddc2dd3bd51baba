// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/reader_state.h"

#include "common/base/states/states.h"

// clang-format off
static const uint32_t moves[READER_STATE_COUNT] = {
    [READER_WAITING]          = STATE_BIT(READER_ASKING) | STATE_BIT(READER_FREEING),
    [READER_ASKING]           = STATE_BIT(READER_CREATING) | STATE_BIT(READER_CREATING_AT_LAST) | STATE_BIT(READER_WAITING) |
                                STATE_BIT(READER_FAILED) | STATE_BIT(READER_FREEING),
    [READER_CREATING]         = STATE_BIT(READER_READING) | STATE_BIT(READER_WAITING) | STATE_BIT(READER_FAILED) | STATE_BIT(READER_FREEING),
    [READER_CREATING_AT_LAST] = STATE_BIT(READER_CHECKING) | STATE_BIT(READER_WAITING) | STATE_BIT(READER_FAILED) | STATE_BIT(READER_FREEING),
    [READER_CHECKING]         = STATE_BIT(READER_READING) | STATE_BIT(READER_WAITING) | STATE_BIT(READER_FAILED) | STATE_BIT(READER_FREEING),
    [READER_READING]          = STATE_BIT(READER_WAITING) | STATE_BIT(READER_FREEING),
    [READER_FAILED]           = STATE_BIT(READER_FREEING),
    [READER_FREEING]          = 0,
};
static const char *const names[READER_STATE_COUNT] = {
    [READER_WAITING] = "waiting", [READER_ASKING] = "asking", [READER_CREATING] = "creating",
    [READER_CREATING_AT_LAST] = "creating at last", [READER_CHECKING] = "checking", [READER_READING] = "reading",
    [READER_FAILED] = "failed", [READER_FREEING] = "freeing",
};
static const States states = {"reader", names, moves, READER_STATE_COUNT};

static const uint32_t progress_moves[READER_PROGRESS_COUNT] = {
    [READER_NOT_BEGUN] = STATE_BIT(READER_BEHIND) | STATE_BIT(READER_CAUGHT_UP),
    [READER_BEHIND]    = STATE_BIT(READER_CAUGHT_UP),
    [READER_CAUGHT_UP] = STATE_BIT(READER_REPORTED),
    [READER_REPORTED]  = 0,
};
static const char *const progress_names[READER_PROGRESS_COUNT] = {
    [READER_NOT_BEGUN] = "new", [READER_BEHIND] = "behind", [READER_CAUGHT_UP] = "caught up", [READER_REPORTED] = "reported",
};
static const States progress_states = {"reader progress", progress_names, progress_moves, READER_PROGRESS_COUNT};
// clang-format on

bool reader_state_move(ReaderState *state, ReaderState next, const char *stream)
{
    if (!states_step(&states, *state, next, str_from(stream))) {
        return false;
    }
    *state = next;
    return true;
}

bool reader_progress_move(ReaderProgress *progress, ReaderProgress next, const char *stream)
{
    if (!states_step(&progress_states, *progress, next, str_from(stream))) {
        return false;
    }
    *progress = next;
    return true;
}
