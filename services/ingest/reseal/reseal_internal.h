// SPDX-License-Identifier: Apache-2.0
// The inside of Reseal: notes and rounds (reseal.c), and what is done with one claimed row
// (reseal_row.c). Law: each row of a round ends once, and the round when all have.
#pragma once

#include "services/ingest/reseal/event_readers.h"
#include "services/ingest/reseal/reseal.h"

typedef enum RowFate {
    ROW_LEFT, // tried again
    ROW_COPIED,
    ROW_GONE, // the original is
} RowFate;

typedef struct ResealRow {
    Reseal *reseal;
    uint64_t sequence;
    int64_t stored_at_us;
    bool copied;
    RowFate fate;
} ResealRow;

struct Reseal {
    ResealOptions options;
    uv_timer_t timer;
    bool stopping;
    int in_air; // statements and requests, and rounds
    int64_t warned_us;
    // the round
    Arena *arena;
    EventReaders readers;
    ResealRow *rows;
    size_t count, open;
    Error failed; // the first of a row
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// Ends with reseal_row_done.
void reseal_row_begin(ResealRow *row);
void reseal_row_done(ResealRow *row, RowFate fate, const Error *err);
