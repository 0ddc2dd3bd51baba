// SPDX-License-Identifier: Apache-2.0
// A stream read from its first message to what is its last one now, for callers that wait.
#pragma once

#include "common/session/session.h"

// The message lives during the call.
typedef void (*StreamEach)(void *ctx, const BusMessage *message);
// filter: only these subjects; NULL: all. ERROR_PERMANENT: there is no such stream.
bool session_walk(
    Session *session, const char *stream, const char *filter, StreamEach each, void *ctx,
    Error *err);
