// SPDX-License-Identifier: Apache-2.0
// Reading the dead letters of a selection: in order up to what is there now, or one by its
// sequence.
#pragma once

#include "common/deadletter/letter.h"
#include "common/session/session.h"

typedef struct Selection {
    Str tenant; // empty: all
    Str stage;  // empty: all
    int64_t since_us;
    int64_t now_us;
} Selection;

typedef struct Scan Scan;

// Selected letters in order, a few at a time; they and `arena` live until the next call. true: the
// scan reads on only after scan_go_on().
typedef bool (*ScanLetters)(
    void *ctx, Scan *scan, const Letter *letters, size_t count, Arena *arena);

// Hands over every selected letter that DEAD has now; what comes meanwhile is not in it. Runs the
// session until the end, or until scan_go_on() was given an error.
bool scan_run(
    Session *session, const Selection *selection, ScanLetters on_letters, void *ctx, Error *err);
void scan_go_on(Scan *scan, const Error *err); // NULL: read on

// *ret_found false: no letter of the selected tenant has that sequence.
bool letter_fetch(
    Session *session, const Selection *selection, uint64_t sequence, Arena *arena, Letter *ret,
    bool *ret_found, Error *err);
