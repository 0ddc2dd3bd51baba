// SPDX-License-Identifier: Apache-2.0
// Reading CONFIG for the length of a command.
#pragma once

#include "common/session/session.h"

// One message, in the stream's order, valid during the call. reason NULL: an entry; else why it is
// none (config_entry.h). false ends the read; an error in *err is then its own.
typedef bool (*ConfigWalk)(void *ctx, const BusMessage *message, const char *reason, Error *err);

typedef struct ConfigPart {
    const char *filter; // NULL: all
    bool earlier;       // earlier messages too, not only the last of each subject
    uint64_t from;      // with earlier: the first sequence; 0: from the beginning
} ConfigPart;

// To the end. An error of the stream's, or of `each`.
bool config_walk(Session *session, const ConfigPart *part, ConfigWalk each, void *ctx, Error *err);
