// SPDX-License-Identifier: Apache-2.0
// Whether a channel's vendor can be reached, as an entry of CONFIG:
// cfg.channel_health.<tenant>.<channel>_<vendor>; tenant "platform": the installation's.
// Dispatchers store it when that changes, and who asks why a notification waits reads it. It is a
// state and no setting, but for one thing: an operator suspends a vendor by status `disabled`,
// until a time or until it is resumed.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"
#include "stentor/v1/config.pb-c.h"

#define CHANNEL_HEALTH_KIND "channel_health"
#define CHANNEL_HEALTH_TENANT "platform"

enum { CHANNEL_HEALTH_KEY_SIZE = 64, CHANNEL_HEALTH_REASON_MAX = 200 };

// "email_smtp"; false: the channel is unknown, or the vendor is not [a-z0-9-]{1,32}.
bool channel_health_key(char out[CHANNEL_HEALTH_KEY_SIZE], Channel channel, Str vendor);

// The event that stores the entry; it lives in `arena`. PERMANENT: it has no key.
bool channel_health_event(
    const Stentor__V1__ChannelHealth *entry, Arena *arena, BusOut *ret, Error *err);

typedef enum ChannelStatus {
    CHANNEL_ACTIVE,
    CHANNEL_DEGRADED,
    CHANNEL_DOWN,
    CHANNEL_DISABLED,
} ChannelStatus;

// What the entry says now: a suspension whose time is over says what down_since_us does.
ChannelStatus channel_health_status(const Stentor__V1__ChannelHealth *entry, int64_t now_us);
const char *channel_status_name(ChannelStatus status); // "active" ...
