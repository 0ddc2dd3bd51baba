// SPDX-License-Identifier: Apache-2.0
// Between two windows, and between the last one and the stream: is anything missing?
#include <string.h>

#include "common/eventlog/log_reader_internal.h"

static bool refuse_hole(const LogReader *r, const LogHole *hole, Error *err)
{
    return error_set(
        err, ERROR_CONFIG,
        "the log of '%s' has a hole: messages %llu to %llu are in no segment (%s)", r->stream,
        (unsigned long long)hole->first, (unsigned long long)hole->last, hole->reason);
}

bool log_reader_joins_window(LogReader *r, const LogWindowRow *row, Error *err)
{
    bool none = row->hole.reason[0] == '\0';
    bool again = strcmp(row->hole.reason, "tail_lost") == 0; // read twice, nothing is missing
    // By time: what is before it is not asked for.
    bool begins =
        r->number == 0 && r->next == 0 && (none || row->min_at_us <= r->options.start_time_us);
    bool follows = r->number == 0 ? row->first <= (r->next > 0 ? r->next : row->first)
                                  : row->number == r->number + 1 && row->first <= r->next;
    bool whole = begins || (follows && (none || again || row->hole.last < r->next));
    if (whole || r->past->passes_holes) {
        return true;
    }
    LogHole hole = row->hole;
    if (hole.reason[0] == '\0') {
        hole = (LogHole){"no row", r->next, row->first - 1};
    }
    return refuse_hole(r, &hole, err);
}

// By time, and every window ends before it: does the stream follow the last one?
static bool join_by_time(LogReader *r, Error *err)
{
    LogExtent extent;
    if (!log_catalog_extent(r->past->catalog, r->stream, &extent, err)) {
        return false;
    }
    if (extent.behind.reason[0] == '\0' && r->stream_first <= extent.last + 1) {
        return true;
    }
    bool named = extent.behind.reason[0] != '\0';
    LogHole hole = {"no row", extent.last + 1, r->stream_first - 1};
    return refuse_hole(r, named ? &extent.behind : &hole, err);
}

// Behind the last window comes what the stream holds; what it does not hold any more is missing.
bool log_reader_joins_stream(LogReader *r, Error *err)
{
    LogHole hole;
    if (r->next == 0) {
        return r->past->passes_holes || join_by_time(r, err);
    }
    if (!log_catalog_hole_behind(r->past->catalog, r->stream, r->number, &hole, err)) {
        return false;
    }
    if (hole.reason[0] == '\0' || (r->number == 0 && r->next > hole.last)) {
        return true;
    }
    if (!r->past->passes_holes) {
        return refuse_hole(r, &hole, err);
    }
    bool other = strcmp(hole.reason, "recreated") == 0;
    r->next = other ? 1 : hole.last + 1;
    r->created_us = other ? 0 : r->created_us;
    r->last_at_us = 0;
    return true;
}
