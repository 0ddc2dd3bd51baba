// SPDX-License-Identifier: Apache-2.0
// A set of channels: which ones an installation delivers. Pure.
#pragma once

#include "common/base/error.h"
#include "common/model/enums.h"

typedef uint32_t ChannelSet; // a bit for each Channel

enum { CHANNEL_SET_TEXT_SIZE = 96, CHANNEL_WARNING_SIZE = 320 };

// How a channel gets a vendor: behind each text that says that it has none.
#define CHANNEL_HINT "(HINT: stentor credential put VENDOR NAME)"

static inline bool channel_set_has(ChannelSet set, Channel channel)
{
    return (set >> channel & 1) != 0;
}

// "email,sms", also with spaces. ERROR_CONFIG: an unknown name, or none at all.
bool channel_set_parse(Str text, ChannelSet *ret, Error *err);
// "email, sms"
void channel_set_text(ChannelSet set, char out[CHANNEL_SET_TEXT_SIZE]);
// What becomes of notifications on a channel that is not in the set of those with a vendor; false:
// it is.
bool channel_set_warn(ChannelSet delivered, Channel channel, char out[CHANNEL_WARNING_SIZE]);
