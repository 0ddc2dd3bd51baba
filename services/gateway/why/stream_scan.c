// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/stream_scan.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/consume/reader.h"

// On the heap, for the reader outlives the answer.
typedef struct StreamScan {
    struct StreamScan *next; // under way
    StreamScans *scans;
    StreamScanQuery query;
    Reader *reader;
    size_t seen;
    int64_t begun_us;
    bool ended;
} StreamScan;

static void on_reader_freed(void *ctx)
{
    StreamScan *scan = ctx;
    scan->scans->open--;
    free(scan);
}

static void end(StreamScan *scan, bool whole)
{
    StreamScan **at = &scan->scans->under_way;
    while (*at != scan) {
        at = &(*at)->next;
    }
    *at = scan->next;
    scan->ended = true;
    scan->query.done(scan->query.ctx, whole);
    reader_free(scan->reader, on_reader_freed, scan);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    StreamScan *scan = ctx;
    for (size_t i = 0; i < count && !scan->ended; i++) {
        bool later = scan->query.to_us != 0 && messages[i].stored_at_us > scan->query.to_us;
        if (later || !scan->query.each(scan->query.ctx, &messages[i])) {
            end(scan, true);
        } else if (++scan->seen >= scan->query.at_most) {
            end(scan, false);
        }
    }
}

static void on_reader_caught_up(void *ctx)
{
    StreamScan *scan = ctx;
    if (!scan->ended) {
        end(scan, true);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    (void)err; // the answer says what could not be read
    StreamScan *scan = ctx;
    if (!scan->ended) {
        end(scan, false);
    }
}

void stream_scan(StreamScans *scans, const StreamScanQuery *query)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    if (scans->open >= STREAM_SCANS_MAX || !bus_connected(scans->bus)) {
        query->done(query->ctx, false);
        return;
    }
    StreamScan *scan = xcalloc(1, sizeof *scan);
    *scan = (StreamScan){
        .next = scans->under_way,
        .scans = scans,
        .query = *query,
        .begun_us = clock_mono_us(),
    };
    scans->under_way = scan;
    scans->open++;
    const ReaderOptions options = {
        .stream = query->stream, .filter = query->filter, .start_time_us = query->from_us};
    scan->reader = reader_new(scans->bus, &options, &handlers, scan);
}

void stream_scans_tick(StreamScans *scans)
{
    int64_t oldest_us = clock_mono_us() - STREAM_SCAN_MS * INT64_C(1000);
    StreamScan *next = NULL;
    for (StreamScan *scan = scans->under_way; scan != NULL; scan = next) {
        next = scan->next;
        if (scan->begun_us < oldest_us) {
            end(scan, false);
        }
    }
}
