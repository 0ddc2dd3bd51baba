// SPDX-License-Identifier: Apache-2.0
#include "common/model/channel_set.h"

#include <stdio.h>
#include <string.h>

bool channel_set_parse(Str text, ChannelSet *ret, Error *err)
{
    ChannelSet set = 0;
    Str name = STR_EMPTY;
    for (Str rest = text; str_split(&rest, ',', &name);) {
        Channel channel = CHANNEL_NONE;
        name = str_trim(name);
        if (!channel_from_name(name, &channel)) {
            return error_set(
                err, ERROR_CONFIG,
                "'" STR_FMT "' is not a channel: expected names such as 'email,sms'",
                STR_ARG(str_slice(name, 0, 40)));
        }
        set |= 1U << channel;
    }
    *ret = set;
    return set != 0 || error_set(err, ERROR_CONFIG, "it names no channel: expected 'email'");
}

void channel_set_text(ChannelSet set, char out[CHANNEL_SET_TEXT_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        if (channel_set_has(set, channel)) {
            len += (size_t)snprintf(
                out + len, CHANNEL_SET_TEXT_SIZE - len, "%s%s", len > 0 ? ", " : "",
                channel_name(channel));
        }
    }
}

bool channel_set_warn(ChannelSet delivered, Channel channel, char out[CHANNEL_WARNING_SIZE])
{
    if (channel_set_has(delivered, channel)) {
        return false;
    }
    char names[CHANNEL_SET_TEXT_SIZE];
    channel_set_text(delivered, names);
    (void)snprintf(
        out, CHANNEL_WARNING_SIZE,
        "channel: no vendor delivers '%s' (STENTOR_INGEST_CHANNELS: %s); a request for it is "
        "refused, and a trigger's notification fails as no_vendor " CHANNEL_HINT,
        channel_name(channel), names);
    return true;
}
