// SPDX-License-Identifier: Apache-2.0
// A notification from its row of the accept log: what history will have a moment later, or later
// still while the archiver holds it back or is away. Pure.
#pragma once

#include "common/history/fold.h"

// The notification's first status in `events` (common/bus/events/frames.h), with what the gate
// asked. ERROR_PERMANENT when they cannot be read, or none is about this notification of this
// tenant.
bool accepted_row(
    Str events, int64_t accepted_at_us, Str tenant, Str id, Arena *arena, HistoryRow *ret,
    Error *err);

// The accept log finds the row of this request by the notification's id: it was made when the
// request was accepted. One that is derived (of an event, a member of a batch, a digest) has
// another time than its row, if it has one.
bool accepted_finds(const HistoryRow *request);
