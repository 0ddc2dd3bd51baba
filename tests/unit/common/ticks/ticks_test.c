// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/ticks/ticks.h"

enum { SHORT_MS = 50, LONG_MS = 100, ROUNDS = 20 };

typedef struct Watch {
    uint64_t at_ms[ROUNDS]; // the loop's clock when it fired
    int count;
    int max;
} Watch;

static void on_tick(uv_timer_t *timer)
{
    Watch *watch = timer->data;
    ticks_keep(timer);
    watch->at_ms[watch->count++] = uv_now(timer->loop);
    if (watch->count == watch->max) {
        uv_timer_stop(timer);
    }
}

static void wait_ms(uv_loop_t *loop, uint64_t ms)
{
    uv_update_time(loop);
    uint64_t end_ms = uv_now(loop) + ms;
    while (uv_now(loop) < end_ms) {
        uv_update_time(loop);
    }
}

static void the_next_multiple_is_never_now(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (uint64_t every_ms = 1; every_ms < 100; every_ms += 7) {
        uint64_t until_ms = ticks_until(&loop, every_ms);
        assert_in_range(until_ms, 1, every_ms);
        assert_int_equal((uv_now(&loop) + until_ms) % every_ms, 0);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

// One begins 17 ms after the other and is slower; each of its ticks is one of the other's.
static void timers_that_began_apart_fire_in_one_turn(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_timer_t timers[2];
    Watch watches[2] = {{.max = ROUNDS}, {.max = 3}};
    uv_loop_init(&loop);
    for (int i = 0; i < 2; i++) {
        uv_timer_init(&loop, &timers[i]);
        timers[i].data = &watches[i];
    }
    wait_ms(&loop, ticks_until(&loop, LONG_MS)); // so both of the first ticks are ahead
    ticks_start(&timers[0], on_tick, SHORT_MS);
    wait_ms(&loop, 17);
    ticks_start(&timers[1], on_tick, LONG_MS);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(watches[1].count, 3);
    for (int i = 0; i < watches[1].count; i++) {
        int j = 0;
        while (j < ROUNDS && watches[0].at_ms[j] != watches[1].at_ms[i]) {
            j++;
        }
        assert_in_range(j, 0, ROUNDS - 1);
    }
    for (int i = 0; i < 2; i++) {
        uv_close((uv_handle_t *)&timers[i], NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_multiple_is_never_now),
        cmocka_unit_test(timers_that_began_apart_fire_in_one_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
