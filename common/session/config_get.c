// SPDX-License-Identifier: Apache-2.0
#include "common/session/config_get.h"

bool config_get(
    Session *session, Arena *arena, const char *subject, Str *ret_payload, uint64_t *ret_sequence,
    Error *err)
{
    BusMessage message;
    bool found = false;
    MessageQuery query = {.stream = "CONFIG", .last_of = subject};
    if (!session_get_message(session, &query, arena, &message, &found, err)) {
        return false;
    }
    *ret_payload = message.payload;
    *ret_sequence = message.sequence;
    return true;
}

bool config_get_sequence(
    Session *session, Arena *arena, const char *subject, uint64_t *ret_sequence, Error *err)
{
    Str payload;
    return config_get(session, arena, subject, &payload, ret_sequence, err);
}
