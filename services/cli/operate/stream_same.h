// SPDX-License-Identifier: Apache-2.0
// Is a stream still the one that a stored position belongs to? As a reader decides it
// (common/bus/consume/stream_check.h), for commands.
#pragma once

#include "common/base/arena.h"
#include "common/bus/consume/stream_check.h"
#include "common/session/session.h"

bool stream_same(
    Session *session, Arena *arena, const char *stream, const StreamPlace *place,
    const StreamState *state, bool *ret_same, Error *err);
// When the first message from `sequence` on was stored, of the subjects that the filter names
// (NULL: that message alone); 0: there is none.
bool stream_stored_at(
    Session *session, Arena *arena, const char *stream, uint64_t sequence, const char *filter,
    int64_t *ret_us, Error *err);
