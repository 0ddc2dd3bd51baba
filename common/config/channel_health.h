// SPDX-License-Identifier: Apache-2.0
// Whether a channel's vendor can be reached, as an entry of CONFIG:
// cfg.channel_health.platform.<channel>_<vendor>. Dispatchers store it when that changes, and who
// asks why a notification waits reads it. It is a state and no setting: it decides nothing.
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
