// SPDX-License-Identifier: Apache-2.0
// What guard.c (a group's way), guard_marks.c (marks, ours and others') and guard_watch.c (a
// watched group) share.
#pragma once

#include "common/bus/consume/guard/guard.h"
#include "common/bus/consume/guard/poison.h"
#include "common/bus/consume/reader.h"
#include "common/bus/consume/worker_internal.h"

enum { PROCESS_SIZE = 17, MARK_BYTES_MAX = 64 + POISON_GROUP_MAX * 44 };

typedef enum GuardState {
    GUARD_FREE,
    GUARD_MARKING,
    GUARD_SYNCING,
    GUARD_IN_HAND,
    GUARD_LIFTING,
} GuardState;

struct Guard {
    Bus *bus;
    char process[PROCESS_SIZE]; // this one's token
    uint64_t marks_made;        // makes the ids of marks differ
    PoisonMarks marks;          // of this service's processes, as far as they were read
    bool acquitted;             // some mark is to be stored again without an input
    Reader *reader;
    bool ready; // all marks have been read
    bool reader_failed, reader_leaves;
    uint64_t seen;     // IN_HAND was read up to here
    int unready_ticks; // while connected
    int blind_ticks;   // left
    bool is_blind;     // logged
    struct Worker *workers[BUS_ENDPOINTS_MAX];
    size_t worker_count, next_worker;
    GuardState state;
    struct Worker *owner; // of the group
    size_t planned;       // the first so many of its suspects
    Batch *batch;         // IN_HAND, LIFTING: handed over; NULL: the group was given up
    uint64_t mark_at;     // SYNCING: the mark's sequence
    int ticks;            // in this state
    int quiet_ticks;      // since first deliveries were handed over
    bool closed;
    bool late;                  // IN_HAND: it is watched when it is not settled soon
    bool watched;               // ... and it is: the mark goes when the loop sleeps
    bool rounded;               // the loop went round once more, so it polls what was started last
    int64_t marked_at_ms;       // watched: since when the mark stands
    int unwatched_ticks;        // left, in which only what has evidence is watched
    int through_ticks;          // since standing marks were compared with what is done
    void (*on_left)(void *ctx); // waits for the reader's end
    void *left_ctx;
};

static inline Str guard_own(const Guard *g)
{
    return str_from(g->process);
}

static inline PoisonInput guard_input_of(uint64_t sequence, int64_t stored_at_us)
{
    return (PoisonInput){sequence, stored_at_us};
}

// ---- guard_marks.c ----

void guard_publish_mark(
    Guard *g, const char *process, Str text, const BusHeader *header, BusAcked on_acked, void *ctx);
void guard_go_blind(Guard *g, const char *why); // no marks are tried for a while
void guard_store_acquitted(Guard *g);           // others' marks without what this one lived over
void guard_read_marks(Guard *g);
void guard_leave_reader(Guard *g);
void guard_ask_what_is_done(Guard *g); // whose marks need not stand any more

// ---- guard_watch.c ----

void guard_watch(Guard *g); // the group in hand: its mark goes when the loop sleeps
