// SPDX-License-Identifier: Apache-2.0
#include "common/config/channel_health.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"

enum { VENDOR_MAX = 32 };

static bool is_vendor(Str vendor)
{
    for (size_t i = 0; i < vendor.len; i++) {
        char c = vendor.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
            return false;
        }
    }
    return vendor.len >= 1 && vendor.len <= VENDOR_MAX;
}

bool channel_health_key(char out[CHANNEL_HEALTH_KEY_SIZE], Channel channel, Str vendor)
{
    const char *name = channel_name(channel);
    if (name[0] == '\0' || !is_vendor(vendor)) {
        return false;
    }
    (void)snprintf(out, CHANNEL_HEALTH_KEY_SIZE, "%s_%.*s", name, STR_ARG(vendor));
    return true;
}

bool channel_health_event(
    const Stentor__V1__ChannelHealth *entry, Arena *arena, BusOut *ret, Error *err)
{
    char key[CHANNEL_HEALTH_KEY_SIZE];
    if (!channel_health_key(key, (Channel)entry->channel, str_from(entry->vendor))) {
        return error_set(
            err, ERROR_PERMANENT, "channel health: channel %d or vendor '%.40s' is unknown",
            (int)entry->channel, entry->vendor);
    }
    Str payload;
    if (!event_pack(&entry->base, arena, &payload, err)) {
        return false;
    }
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    subject_config(subject, CHANNEL_HEALTH_KIND, str_from(entry->tenant), str_from(key));
    const char *what = arena_printf(
        arena, "%" PRId64 "/%" PRId64 "/%s", entry->down_since_us, entry->changed_at_us,
        entry->noted_by);
    event_id_derive("health", str_from(subject), str_from(what), event_id);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id), .payload = payload};
    return true;
}

ChannelStatus channel_health_status(const Stentor__V1__ChannelHealth *entry, int64_t now_us)
{
    switch (entry->status) {
    case STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED:
        if (entry->until_us == 0 || now_us < entry->until_us) {
            return CHANNEL_DISABLED;
        }
        break;
    case STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DEGRADED:
        return CHANNEL_DEGRADED;
    case STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DOWN:
        return CHANNEL_DOWN;
    default:
        break;
    }
    return entry->down_since_us > 0 ? CHANNEL_DOWN : CHANNEL_ACTIVE;
}

const char *channel_status_name(ChannelStatus status)
{
    switch (status) {
    case CHANNEL_ACTIVE:
        return "active";
    case CHANNEL_DEGRADED:
        return "degraded";
    case CHANNEL_DOWN:
        return "down";
    case CHANNEL_DISABLED:
        return "disabled";
    }
    return "";
}
