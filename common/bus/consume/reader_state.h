// SPDX-License-Identifier: Apache-2.0
// Where a read is: two small machines, each with one writer and one table of moves (reader_state.c;
// reader_state_test.c walks all pairs).
//
// How a read starts, again from waiting after each trouble:
//
//   waiting --> asking --+--> creating -------------------------.
//      ^          |      '--> creating at last --> checking ----+--> reading
//      |          |                 |                 |         |       |
//      '----------+-----------------+-----------------+---------+-------'
//
//   asking, creating, creating at last, checking --> failed: it cannot go on
//   any --> freeing: no handler is called any more
//
// creating at last: the consumer begins AT the last message read; checking: the next delivery must
// be that message (reader.c says why).
//
// How far it has come with what was in the stream when it began:
//
//   new --------+--> behind --> caught up --> reported
//               '-----------------^
#pragma once

#include <stdbool.h>

typedef enum ReaderState {
    READER_WAITING,
    READER_ASKING,
    READER_CREATING,
    READER_CREATING_AT_LAST,
    READER_CHECKING,
    READER_READING,
    READER_FAILED,
    READER_FREEING,
    READER_STATE_COUNT,
} ReaderState;

typedef enum ReaderProgress {
    READER_NOT_BEGUN,
    READER_BEHIND,
    READER_CAUGHT_UP,
    READER_REPORTED,
    READER_PROGRESS_COUNT,
} ReaderProgress;

// false: refused, nothing changed (common/base/states/states.h).
bool reader_state_move(ReaderState *state, ReaderState next, const char *stream);
bool reader_progress_move(ReaderProgress *progress, ReaderProgress next, const char *stream);
