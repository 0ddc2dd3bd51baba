// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/vendors/channel_states.h"

#include <string.h>

#include "common/codec/event.h"

static Str place_of(Str tenant, Str key, Arena *arena)
{
    return str_from(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(key)));
}

void channel_states_put(Map *states, Str tenant, Str key, Str payload)
{
    Arena *arena = arena_new(0);
    Str place = place_of(tenant, key, arena);
    if (payload.len == 0) {
        (void)map_remove(states, place);
    } else {
        char *copy = xmalloc(sizeof payload.len + payload.len);
        memcpy(copy, &payload.len, sizeof payload.len);
        memcpy(copy + sizeof payload.len, payload.ptr, payload.len);
        map_put(states, place, copy);
    }
    arena_free(arena);
}

const Stentor__V1__ChannelHealth *channel_states_get(
    const Map *states, Str tenant, Str key, Arena *arena)
{
    const char *copy = map_get(states, place_of(tenant, key, arena));
    size_t len = 0;
    if (copy == NULL) {
        return NULL;
    }
    memcpy(&len, copy, sizeof len);
    return (const Stentor__V1__ChannelHealth *)event_unpack(
        &stentor__v1__channel_health__descriptor, str_of(copy + sizeof len, len), arena, NULL);
}
