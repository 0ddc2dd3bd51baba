// SPDX-License-Identifier: Apache-2.0
// Reading CONFIG or CONFIG_HISTORY from beginning to end.
#pragma once

#include "services/cli/session.h"

// One message, in the stream's order, valid during the call. reason NULL: an entry; else why it is
// none (config_entry.h). false ends the read, for which *err is then the reason.
typedef bool (*ConfigWalk)(void *ctx, const BusMessage *message, const char *reason, Error *err);

// filter NULL: all. An error of the stream's, or of `each`.
bool config_walk(
    Session *session, const char *stream, const char *filter, ConfigWalk each, void *ctx,
    Error *err);
