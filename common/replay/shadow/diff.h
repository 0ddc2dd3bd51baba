// SPDX-License-Identifier: Apache-2.0
// The difference of two texts, line by line, as `diff -u` prints it (longest common subsequence,
// three lines of context). Pure and bounded: of longer texts only the first difference is shown.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"

enum { DIFF_LINES_MAX = 2000 };

// Appends to `out`, with the name and both sides' labels as its head, and nothing when they are
// equal. Over DIFF_LINES_MAX lines that differ on a side: one line that says where they part.
// *signature is mixed with the places of the changed lines, not with their text: equal for two
// pairs that differ in the same lines. `scratch` is used up to 8 MB and is the caller's to reset.
// false: they are equal.
bool diff_unified(
    const char *before_label, Str before, const char *after_label, Str after, Arena *scratch,
    Buf *out, uint64_t *signature);
