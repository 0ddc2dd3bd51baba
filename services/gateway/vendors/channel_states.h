// SPDX-License-Identifier: Apache-2.0
// What CONFIG says of vendors' health (common/config/channel_health.h), as it was stored.
#pragma once

#include "common/base/arena.h"
#include "common/base/map.h"
#include "stentor/v1/config.pb-c.h"

// key: "email_smtp"; payload empty: removed.
void channel_states_put(Map *states, Str tenant, Str key, Str payload);
// In `arena`; NULL: none.
const Stentor__V1__ChannelHealth *channel_states_get(
    const Map *states, Str tenant, Str key, Arena *arena);
