// SPDX-License-Identifier: Apache-2.0
#include "common/ticks/ticks.h"

uint64_t ticks_until(const uv_loop_t *loop, uint64_t every_ms)
{
    return every_ms - uv_now(loop) % every_ms;
}

void ticks_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t every_ms)
{
    (void)uv_timer_start(timer, callback, ticks_until(timer->loop, every_ms), every_ms);
}

void ticks_keep(uv_timer_t *timer)
{
    ticks_start(timer, timer->timer_cb, uv_timer_get_repeat(timer));
}
