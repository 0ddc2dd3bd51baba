// SPDX-License-Identifier: Apache-2.0
// What a shadow has found (common/replay/shadow), as the JSON that a job keeps. Pure and bounded.
#pragma once

#include <jansson.h>

#include "common/replay/shadow/shadow_tally.h"

enum {
    SHADOW_EXAMPLES = 10,
    SHADOW_LINES_MAX = 60, // of an example's part
    SHADOW_LINE_MAX = 300, // bytes of one
    // Bytes of JSON that the lines of all examples take: with the rest, below JOB_RESULT_MAX.
    SHADOW_LINES_ROOM = 384 * 1024,
    SHADOW_REASONS_LISTED = 20,
};

uint64_t shadow_answer_compared(const ShadowTally *tally);        // requests of the template
json_t *shadow_answer(const ShadowTally *tally, int64_t took_us); // new reference
