// SPDX-License-Identifier: Apache-2.0
// What projector.c and projector_state.c share: the states, and how one is left for another.
#pragma once

#include "common/bus/consume/positions.h"
#include "common/bus/consume/projector.h"
#include "common/bus/consume/reader.h"
#include "common/db/lock.h"

enum { PROJECTOR_RETRY_MAX_MS = 5000 };

typedef enum ProjectorState {
    PROJECTOR_STANDBY,
    PROJECTOR_LOADING,
    PROJECTOR_FOLDING,
    PROJECTOR_FLUSHING,
    PROJECTOR_DROPPING, // readers are closing; then STANDBY or LOADING
    PROJECTOR_FAILED,
    PROJECTOR_STOPPED,
} ProjectorState;

typedef struct Source {
    Projector *projector;
    Position *position;
    void *reader; // of options.readers; NULL: none
    bool caught_up;
    bool paused;
} Source;

struct Projector {
    Bus *bus;
    ProjectorOptions options;
    ProjectorHandlers handlers;
    void *ctx;
    DbLock *lock;
    Positions positions;
    Source sources[POSITIONS_MAX]; // one for each position
    ProjectorState state;
    Arena *arena;
    size_t folded;
    size_t folded_bytes; // of their payloads
    bool in_air;         // a flush has begun, and was not committed yet
    Arena *air_arena;    // of its events
    size_t air_folded;
    int parts_open; // transactions of a flush in two parts that were not answered
    Error part_failed;
    size_t dead_letters_open; // whose ack has not come yet
    bool dead_letter_failed;  // one was not stored: the position must not pass it
    bool in_database;         // a load or a flush has not been answered
    bool stopping;
    size_t readers_open;
    uint64_t tails_lost; // of readers that are gone
    int retry_ms;
    uv_timer_t timer;  // closes a flush, or tries again
    char failure[240]; // an Error's text
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

void projector_change_state(Projector *p, ProjectorState next);
void projector_wait_ms(Projector *p, int ms);
int projector_next_retry(Projector *p);
void projector_drop(Projector *p);
void projector_fail(Projector *p, const Error *err);
// What cannot be written would be refused for ever, if the owner does not know better.
void projector_fail_or_retry(Projector *p, const Error *err);
// The one place that decides what follows; called whenever something ended or a timer is due.
void projector_move_on(Projector *p);
