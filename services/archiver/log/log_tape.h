// SPDX-License-Identifier: Apache-2.0
// Tape: one stream on its way into segments. What it does next follows from what it holds
// (tape_go): a closed window is stored and committed; a hole is noted; without a reader the stream
// is asked where it begins, and read from behind the position; a window that is due is closed. One
// thing at a time; trouble waits and does the same again.
#pragma once

#include "common/bus/consume/reader.h"
#include "common/db/db.h"
#include "common/service/metrics.h"
#include "services/archiver/log/log_store.h"
#include "services/archiver/log/log_window.h"

typedef struct Tape Tape;

// What tapes share; the writer's.
typedef struct TapeShared {
    Bus *bus;
    DbPool *pool;
    LogStore *store;
    uint64_t segment_bytes;
    int64_t segment_age_us;
    bool runs;                     // this process has the lock and knows the positions
    void (*on_idle)(void *ctx);    // a tape has nothing under way any more, after runs became false
    void (*on_refused)(void *ctx); // Postgres does not take a window: the positions are others
    void (*on_free_store)(void *ctx);
    void *ctx;
    Metric *failures, *segments, *events, *bytes, *holes;
} TapeShared;

typedef struct TapePosition {
    uint64_t number;   // of the last window; 0: none
    uint64_t sequence; // everything up to here is stored, or has a hole's row
    int64_t created_us;
    int64_t stored_at_us; // of that message; 0: not known
} TapePosition;

typedef struct TapeHole {
    const char *reason; // NULL: none
    uint64_t first, last;
} TapeHole;

struct Tape {
    TapeShared *shared;
    const LogStream *stream;
    TapePosition at;
    LogWindow window;
    size_t next_file; // of the closed window
    TapeHole hole;
    Reader *reader;
    bool reader_closing;
    bool busy;    // a request, a put or a transaction is under way
    bool asked;   // first_sequence, found_created_us and max_bytes are known
    bool refused; // the reader will not go on from the position
    bool by_time; // the stream lost its tail: its next message may have any sequence
    uint64_t first_sequence, max_bytes;
    int64_t found_created_us;
    int64_t retry_at_us;
    int64_t pause_us;
};

void tape_init(
    Tape *tape, TapeShared *shared, const LogStream *stream, SegmentPacker *packer,
    const char *spool_folder);
void tape_done(Tape *tape);       // only an idle one
bool tape_idle(const Tape *tape); // nothing is under way, nothing open
void tape_go(Tape *tape);
int64_t tape_oldest_us(const Tape *tape); // when the oldest message not stored yet was published; 0

// ---- log_commit.c ----

// Adds the closed window, or the hole, to a transaction.
void tape_add_window(const Tape *tape, DbTxn *txn);
void tape_add_hole(const Tape *tape, DbTxn *txn);
