// SPDX-License-Identifier: Apache-2.0
// Pace: a token bucket, so many a second and never more than one second's worth at once. Pure: time
// is an argument, of any clock that does not go back.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Pace {
    int64_t per_s;  // 0: no limit
    int64_t burst;  // what may be saved up
    int64_t tokens; // in millionths
    int64_t at_us;  // when `tokens` was right
} Pace;

enum { PACE_PER_S_MAX = 1000000 };

// per_s 0..PACE_PER_S_MAX; burst >= 1. Begins with an empty bucket, so that a process that is
// restarted again and again does not send a burst each time.
void pace_init(Pace *pace, int64_t per_s, int64_t burst, int64_t now_us);
// Takes `count` (at most `burst`) when they are there. Else false, nothing is taken, and
// *ret_wait_us (may be NULL) is how long it takes until they are: at least 1.
bool pace_take(Pace *pace, int64_t count, int64_t now_us, int64_t *ret_wait_us);
// What was taken and not used after all.
void pace_give_back(Pace *pace, int64_t count);
