// SPDX-License-Identifier: Apache-2.0
// The notifications that a comparison leaves out: those with a request behind the live projection's
// position. The archiver writes such a one as soon as its end comes (hold.h), so the live row may
// have what was not folded. What the streams got after the live rows were read is in none of them.
// Pure.
#pragma once

#include "common/base/buf.h"

typedef struct HistoryPassed {
    Buf ids;  // "ntf_...,ntf_..."
    bool cut; // more than max_bytes: the list lacks some
} HistoryPassed;

void history_passed_init(HistoryPassed *out, size_t max_bytes);
void history_passed_done(HistoryPassed *passed);
// last: of the request's stream, after the live rows were read; 0: not known, each counts.
void history_passed_note(HistoryPassed *passed, Str id, uint64_t sequence, uint64_t last);
