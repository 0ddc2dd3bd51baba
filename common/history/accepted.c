// SPDX-License-Identifier: Apache-2.0
#include "common/history/accepted.h"

#include "common/bus/events/frames.h"
#include "common/history/event_row.h"

static bool is_about(const HistoryRow *row, Str tenant, Str id)
{
    return str_eq(row->id, id) && str_eq(row->tenant, tenant);
}

bool accepted_row(
    Str events, int64_t accepted_at_us, Str tenant, Str id, Arena *arena, HistoryRow *ret,
    Error *err)
{
    Frame *frames = NULL;
    size_t count = 0;
    if (!frames_unpack(events, arena, &frames, &count, err)) {
        return false;
    }
    Str gate_trace = STR_EMPTY; // of the request, which stands before its status
    for (size_t i = 0; i < count; i++) {
        bool status = frames[i].kind == FRAME_STATUS;
        BusMessage message = {
            .stream = status ? "STATUS" : "REQUEST",
            .payload = frames[i].out.payload,
            .stored_at_us = accepted_at_us,
        };
        HistoryRow row;
        AttemptRow attempt;
        if (frames[i].kind == FRAME_DEFERRED) {
            continue;
        }
        if (!event_row_read(&message, arena, &row, &attempt, err)) {
            return false;
        }
        if (!is_about(&row, tenant, id)) {
            continue;
        }
        if (status) {
            Str own = row.text[FOLD_GATE_TRACE];
            row.text[FOLD_GATE_TRACE] = own.len > 0 ? own : gate_trace;
            *ret = row;
            return true;
        }
        gate_trace = row.text[FOLD_GATE_TRACE];
    }
    return error_set(
        err, ERROR_PERMANENT, "the accept log's row of '" STR_FMT "' has no status of it",
        STR_ARG(id));
}

// As ingest.accepted_events asks: the row of the id's millisecond.
bool accepted_finds(const HistoryRow *request)
{
    int64_t since_us = request->at_us[FOLD_QUEUED] - request->created_at_us;
    return since_us >= 0 && since_us < 1000 && request->text[FOLD_DIGEST].len == 0;
}
