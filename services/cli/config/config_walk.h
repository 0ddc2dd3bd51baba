// SPDX-License-Identifier: Apache-2.0
// Reading CONFIG or CONFIG_HISTORY for the length of a command.
#pragma once

#include "common/session/session.h"

// One message, in the stream's order, valid during the call. reason NULL: an entry; else why it is
// none (config_entry.h). false ends the read; an error in *err is then its own.
typedef bool (*ConfigWalk)(void *ctx, const BusMessage *message, const char *reason, Error *err);

typedef struct ConfigPart {
    const char *stream; // NULL: CONFIG
    const char *filter; // NULL: all
    uint64_t from;      // the first sequence; 0: from the beginning
} ConfigPart;

// To the end. An error of the stream's, or of `each`.
bool config_walk(Session *session, const ConfigPart *part, ConfigWalk each, void *ctx, Error *err);
