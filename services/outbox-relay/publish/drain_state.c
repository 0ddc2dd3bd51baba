// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/drain_state.h"

#include "common/base/states/states.h"

// clang-format off
static const uint32_t moves[DRAIN_STATE_COUNT] = {
    [DRAIN_NEW]           = STATE_BIT(DRAIN_IDLE) | STATE_BIT(DRAIN_ENDING),
    [DRAIN_IDLE]          = STATE_BIT(DRAIN_READING) | STATE_BIT(DRAIN_SCANNING) | STATE_BIT(DRAIN_ADOPTING) | STATE_BIT(DRAIN_PUTTING_ASIDE) |
                            STATE_BIT(DRAIN_ENDING),
    [DRAIN_READING]       = STATE_BIT(DRAIN_IDLE) | STATE_BIT(DRAIN_LAST_ANSWER),
    [DRAIN_SCANNING]      = STATE_BIT(DRAIN_IDLE) | STATE_BIT(DRAIN_LAST_ANSWER),
    [DRAIN_ADOPTING]      = STATE_BIT(DRAIN_IDLE) | STATE_BIT(DRAIN_LAST_ANSWER),
    [DRAIN_PUTTING_ASIDE] = STATE_BIT(DRAIN_IDLE) | STATE_BIT(DRAIN_LAST_ANSWER),
    [DRAIN_LAST_ANSWER]   = STATE_BIT(DRAIN_ENDING),
    [DRAIN_ENDING]        = STATE_BIT(DRAIN_STOPPED),
    [DRAIN_STOPPED]       = 0,
};
static const char *const names[DRAIN_STATE_COUNT] = {
    [DRAIN_NEW] = "new", [DRAIN_IDLE] = "idle", [DRAIN_READING] = "reading", [DRAIN_SCANNING] = "scanning",
    [DRAIN_ADOPTING] = "adopting", [DRAIN_PUTTING_ASIDE] = "putting a row aside",
    [DRAIN_LAST_ANSWER] = "awaiting the last answer", [DRAIN_ENDING] = "ending", [DRAIN_STOPPED] = "stopped",
};
// clang-format on
static const States states = {"outbox drain", names, moves, DRAIN_STATE_COUNT};

bool drain_state_move(DrainState *state, DrainState next, const char *relay)
{
    if (!states_step(&states, *state, next, str_from(relay))) {
        return false;
    }
    *state = next;
    return true;
}
