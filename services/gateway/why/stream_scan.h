// SPDX-License-Identifier: Apache-2.0
// A bounded look into a stream for one call: messages of a filter from a time on, in order, until
// there is enough, the end of what was there, a number of messages or a time is reached.
#pragma once

#include "common/bus/jetstream/bus.h"

enum { STREAM_SCANS_MAX = 16, STREAM_SCAN_MS = 3000 };

// Of a process. Borrows the bus. Before it ends, `open` must be 0.
typedef struct StreamScans {
    Bus *bus;
    size_t open; // readers not yet freed
    struct StreamScan *under_way;
} StreamScans;

typedef struct StreamScanQuery {
    const char *stream;
    const char *filter;
    int64_t from_us, to_us; // stored then; from 0: from the beginning, to 0: to the end
    size_t at_most;         // messages that are looked at
    bool (*each)(void *ctx, const BusMessage *message); // valid during the call; false: enough
    // Once, from the loop or in the call. whole: nothing that was there was left out.
    void (*done)(void *ctx, bool whole);
    void *ctx;
} StreamScanQuery;

void stream_scan(StreamScans *scans, const StreamScanQuery *query);
void stream_scans_tick(StreamScans *scans); // every 500 ms: ends what takes too long
