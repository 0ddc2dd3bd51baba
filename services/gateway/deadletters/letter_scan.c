// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/deadletters/letter_scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/consume/reader.h"

enum { BATCH_MAX = 32, FILTER_SIZE = 128 }; // a letter may have 900 KB

struct LetterScan {
    LetterScan *next;
    LetterScans *scans;
    LetterScanOptions options;
    char filter[FILTER_SIZE];
    Reader *reader;
    Arena *arena;
    LetterScanEnd end;
    size_t bytes;
    int64_t started_us;
    bool ended;
};

static void on_reader_freed(void *ctx)
{
    LetterScan *scan = ctx;
    scan->scans->count--;
    arena_free(scan->arena);
    free(scan);
}

static void end(LetterScan *scan, const Error *err)
{
    LetterScan **at = &scan->scans->first;
    while (*at != scan) {
        at = &(*at)->next;
    }
    *at = scan->next;
    scan->ended = true;
    reader_free(scan->reader, on_reader_freed, scan);
    scan->options.done(scan->options.ctx, &scan->end, err);
}

// false: the scan has ended.
static bool take(LetterScan *scan, const BusMessage *message)
{
    const LetterScanOptions *options = &scan->options;
    if (message->sequence <= options->after || message->stored_at_us < options->since_us) {
        return true;
    }
    Letter letter;
    arena_reset(scan->arena);
    letter_read(message, scan->arena, &letter);
    scan->bytes += message->payload.len;
    scan->end.last = message->sequence;
    scan->end.last_us = message->stored_at_us;
    if (options->each(options->ctx, &letter, scan->arena) && scan->bytes < LETTER_SCAN_BYTES) {
        return true;
    }
    end(scan, NULL);
    return false;
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    LetterScan *scan = ctx;
    for (size_t i = 0; i < count && !scan->ended; i++) {
        if (!take(scan, &messages[i])) {
            return;
        }
    }
}

static void on_reader_caught_up(void *ctx)
{
    LetterScan *scan = ctx;
    if (!scan->ended) {
        scan->end.whole = true;
        end(scan, NULL);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    LetterScan *scan = ctx;
    if (!scan->ended) {
        end(scan, err);
    }
}

bool letter_scan(LetterScans *scans, const LetterScanOptions *options)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    if (scans->count >= LETTER_SCANS_MAX || !bus_connected(options->bus)) {
        return false;
    }
    LetterScan *scan = xcalloc(1, sizeof *scan);
    scan->scans = scans;
    scan->options = *options;
    scan->arena = arena_new(0);
    scan->started_us = clock_mono_us();
    scan->next = scans->first;
    scans->first = scan;
    scans->count++;
    Str stage = options->stage.len > 0 ? options->stage : STR("*");
    (void)snprintf(
        scan->filter, sizeof scan->filter, "ntf.dead." STR_FMT "." STR_FMT, STR_ARG(stage),
        STR_ARG(options->tenant));
    // By time: a sequence that DEAD has lost since would be refused.
    ReaderOptions reader = {
        .stream = "DEAD",
        .filter = scan->filter,
        .start_time_us = options->since_us,
        .batch_max = BATCH_MAX,
    };
    scan->reader = reader_new(options->bus, &reader, &handlers, scan);
    return true;
}

void letter_scans_tick(LetterScans *scans, int64_t now_us)
{
    Error err = {0};
    LetterScan *next = NULL;
    (void)error_set(&err, ERROR_TRANSIENT, "dead letters could not be read from NATS in time");
    for (LetterScan *scan = scans->first; scan != NULL; scan = next) {
        next = scan->next;
        if (now_us - scan->started_us > LETTER_SCAN_MS * INT64_C(1000)) {
            // What was read so far is a part; nothing at all is NATS' trouble.
            end(scan, scan->end.last > 0 ? NULL : &err);
        }
    }
}
