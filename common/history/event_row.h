// SPDX-License-Identifier: Apache-2.0
// One event as the row that it alone would make. Everything that the tables could refuse is refused
// here, by the name of its field, so that no event can make a flush fail. Pure. Merging it with
// other rows is fold.h.
#pragma once

#include "common/history/fold.h"

// Slices point into the message as unpacked in `arena`. ret_attempt->number is 0 when the event
// tells of no attempt. ret_row->status is NONE when it changes no row: a machine's open or click.
// ERROR_PERMANENT when it is not an event of its stream, or cannot be stored.
bool event_row_read(
    const BusMessage *message, Arena *arena, HistoryRow *ret_row, AttemptRow *ret_attempt,
    Error *err);
