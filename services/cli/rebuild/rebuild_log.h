// SPDX-License-Identifier: Apache-2.0
// What the log of a rebuild holds, stream by stream, and since when.
#pragma once

#include "common/db/db.h"
#include "common/history/rebuild.h"
#include "common/history/rebuild_schema.h"
#include "common/recipients/people_rebuild.h"
#include "common/registry/projections.h"
#include "common/session/session.h"
#include "services/cli/cli.h"
#include "services/cli/operate/archived_log.h"

// An event's notification is at most a day younger than the event by its id's time (event_row.c
// refuses others), so what is a day younger than the log's beginning has all of its events in it.
static const int64_t CARRY_MARGIN_US = INT64_C(24) * 3600 * 1000000;

typedef struct StreamInfo {
    uint64_t first, last, count, deleted;
    int64_t first_at_us, last_at_us; // 0: none
    int64_t created_us;
} StreamInfo;

typedef struct Rebuild {
    Cli *cli;
    const ProjectionRow *row;
    bool dry, carry, keep_old;
    Session session;
    DbPool *pool;
    RebuildSchema *schema;
    HistoryRebuild *projection;
    PeopleRebuild *people;
    uv_timer_t poll;
    bool (*reached)(struct Rebuild *rebuild);              // what the poll waits for
    const char *(*failure)(const struct Rebuild *rebuild); // of the projection; NULL: none
    const char *const *stream_names; // of the projection; the arrays are in their order
    int stream_count;                // at most HISTORY_STREAM_COUNT
    StreamInfo streams[HISTORY_STREAM_COUNT];
    ArchivedLog log;                      // what came before the streams' beginning
    uint64_t until[HISTORY_STREAM_COUNT]; // how far the streams hold events folded live
    HistoryUntil folded[HISTORY_STREAM_COUNT];
    uint64_t first[HISTORY_STREAM_COUNT];    // when the rebuild began: behind the last segment
    uint64_t position[HISTORY_STREAM_COUNT]; // when it stopped folding
    const char
        *passed;     // of history: the notifications that are not compared (history_rebuild_passed)
    bool passed_cut; // some are not named
    uint64_t last[HISTORY_STREAM_COUNT]; // where the streams ended after the live rows were read
    int64_t before_us;                   // older rows were carried over; 0: none
    int64_t missing_before_us;
    int64_t began_us;
    int64_t carried;
    uint64_t events, unreadable;
    int64_t differences;
    Buf shown; // of the differences, one a line
    double seconds;
} Rebuild;

// Where each stream stands now.
bool rebuild_ask_streams(Rebuild *rebuild, Error *err);
bool rebuild_recognise_streams(Rebuild *rebuild, RebuildPositions *live, Error *err);
// Every event that the stream does not hold any more was stored before this; 0: it holds all.
int64_t rebuild_beginning(const StreamInfo *info, int64_t folded_created_us);
// Where the log begins, segments included. *ret_us: rows of notifications that are older may have
// events that the log does not hold; 0: none.
bool rebuild_find_beginning(
    Rebuild *rebuild, const RebuildPositions *live, int64_t *ret_us, Error *err);
