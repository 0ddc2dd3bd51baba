// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/job_state.h"

#include "common/base/states/states.h"

// clang-format off
static const uint32_t moves[JOB_STATE_COUNT] = {
    [JOB_ADMITTED]    = STATE_BIT(JOB_HELD) | STATE_BIT(JOB_OPENING) | STATE_BIT(JOB_ENDED),
    [JOB_HELD]        = STATE_BIT(JOB_OPENING) | STATE_BIT(JOB_ENDED),
    [JOB_OPENING]     = STATE_BIT(JOB_CLAIMING) | STATE_BIT(JOB_ENDED),
    [JOB_CLAIMING]    = STATE_BIT(JOB_CLAIMED) | STATE_BIT(JOB_REFUSED) | STATE_BIT(JOB_ENDED),
    [JOB_REFUSED]     = STATE_BIT(JOB_TAKING_OVER) | STATE_BIT(JOB_PARKING) | STATE_BIT(JOB_RECORDED) | STATE_BIT(JOB_ENDED),
    [JOB_TAKING_OVER] = STATE_BIT(JOB_CLAIMED) | STATE_BIT(JOB_ENDED),
    [JOB_PARKING]     = STATE_BIT(JOB_RECORDED) | STATE_BIT(JOB_ENDED),
    [JOB_CLAIMED]     = STATE_BIT(JOB_SENDING) | STATE_BIT(JOB_MOVING) | STATE_BIT(JOB_RECORDING) | STATE_BIT(JOB_RELEASING) | STATE_BIT(JOB_ENDED),
    [JOB_SENDING]     = STATE_BIT(JOB_MOVING) | STATE_BIT(JOB_RECORDING) | STATE_BIT(JOB_RELEASING),
    [JOB_MOVING]      = STATE_BIT(JOB_CLAIMED) | STATE_BIT(JOB_RECORDING) | STATE_BIT(JOB_ENDED),
    [JOB_RECORDING]   = STATE_BIT(JOB_RECORDED) | STATE_BIT(JOB_PROVED) | STATE_BIT(JOB_ENDED),
    [JOB_RELEASING]   = STATE_BIT(JOB_ENDED),
    [JOB_RECORDED]    = STATE_BIT(JOB_ENDED),
    [JOB_PROVED]      = STATE_BIT(JOB_ENDED),
    [JOB_ENDED]       = 0,
};
static const char *const names[JOB_STATE_COUNT] = {
    [JOB_ADMITTED] = "admitted", [JOB_HELD] = "held", [JOB_OPENING] = "opening", [JOB_CLAIMING] = "claiming",
    [JOB_REFUSED] = "refused", [JOB_TAKING_OVER] = "taking over", [JOB_PARKING] = "parking", [JOB_CLAIMED] = "claimed",
    [JOB_SENDING] = "sending", [JOB_MOVING] = "moving", [JOB_RECORDING] = "recording", [JOB_RELEASING] = "releasing",
    [JOB_RECORDED] = "recorded", [JOB_PROVED] = "proved", [JOB_ENDED] = "ended",
};
// clang-format on
static const States states = {"dispatcher job", names, moves, JOB_STATE_COUNT};

bool job_state_move(JobState *state, JobState next, Str name)
{
    if (!states_step(&states, *state, next, name)) {
        return false;
    }
    *state = next;
    return true;
}

bool job_state_is_claimed(JobState state)
{
    return state == JOB_SENDING || state == JOB_MOVING || state == JOB_RECORDING ||
           state == JOB_RELEASING;
}

bool job_state_is_at_rest(JobState state)
{
    return state == JOB_ADMITTED || state == JOB_REFUSED || state == JOB_CLAIMED ||
           state == JOB_RECORDED || state == JOB_PROVED;
}
