// SPDX-License-Identifier: Apache-2.0
// When a process looks after itself: timers of one pace, and of paces that divide each other, fire
// in one turn of the loop, so that an idle process wakes up once for all of them.
#pragma once

#include <stdint.h>
#include <uv.h>

// Milliseconds, 1 to `every_ms`, until the loop's clock is a multiple of `every_ms`.
uint64_t ticks_until(const uv_loop_t *loop, uint64_t every_ms);

// Like uv_timer_start: first at the next multiple of `every_ms`, then so often.
void ticks_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t every_ms);

// In the callback of a timer that keeps its pace: the next one is at a multiple again. Without it
// each late turn moves the timer away from the others.
void ticks_keep(uv_timer_t *timer);
