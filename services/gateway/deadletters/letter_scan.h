// SPDX-License-Identifier: Apache-2.0
// A tenant's dead letters read in order, up to what DEAD holds when the read begins. It reads
// LETTER_SCAN_BYTES and for LETTER_SCAN_MS at most, and says where it stopped.
#pragma once

#include "common/deadletter/letter.h"

enum {
    LETTER_SCANS_MAX = 2, // at once; the service has eight names for readers of a stream
    LETTER_SCAN_BYTES = 64 * 1024 * 1024,
    LETTER_SCAN_MS = 8000,
};

typedef struct LetterScan LetterScan;

// Those of a process.
typedef struct LetterScans {
    LetterScan *first;
    size_t count; // with those whose reader is still being freed
} LetterScans;

typedef struct LetterScanEnd {
    bool whole;      // every letter was handed over
    uint64_t last;   // the last one that was; 0: none
    int64_t last_us; // when it was stored
} LetterScanEnd;

typedef struct LetterScanOptions {
    Bus *bus;
    Str tenant, stage; // names; stage empty: any
    int64_t since_us;
    uint64_t after; // only behind this one; 0: all
    // Letter and arena live during the call. false: enough, this one was the last.
    bool (*each)(void *ctx, const Letter *letter, Arena *arena);
    // Once, from the loop; TRANSIENT when NATS does not answer in time.
    void (*done)(void *ctx, const LetterScanEnd *end, const Error *err);
    void *ctx;
} LetterScanOptions;

// false: too many are under way, or NATS is away; done is not called.
bool letter_scan(LetterScans *scans, const LetterScanOptions *options);
void letter_scans_tick(LetterScans *scans, int64_t now_us); // ends those that take too long
