// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/vendor/push/bearers.h"

#define S INT64_C(1000000)
#define NOW (1000 * S)

static const VendorBearer one = {{"one", 3}, NOW + 80 * S, NOW + 100 * S};

static int up(void **state)
{
    *state = bearers_new();
    return 0;
}

static int down(void **state)
{
    bearers_free(*state);
    return 0;
}

static void expect(Bearers *bearers, Str secret, int64_t now_us, const char *text, bool due)
{
    bool is_due = !due;
    Str got = bearers_get(bearers, STR("fcm/main"), secret, now_us, &is_due);
    assert_true(str_eq(got, str_from(text)));
    assert_int_equal(is_due, due);
}

static void it_is_kept_until_it_expires_and_renewed_before(void **state)
{
    Bearers *bearers = *state;
    expect(bearers, STR("s"), NOW, "", true);
    expect(bearers, STR("s"), NOW + S, "", false); // one caller asks
    assert_true(bearers_put(bearers, STR("fcm/main"), STR("s"), &one, NOW + S));
    expect(bearers, STR("s"), NOW + 79 * S, "one", false);
    expect(bearers, STR("s"), NOW + 80 * S, "one", true); // the old one, while another is had
    expect(bearers, STR("s"), NOW + 81 * S, "one", false);
    expect(bearers, STR("s"), NOW + 100 * S, "", true);
}

static void one_that_could_not_be_had_is_asked_for_again_later(void **state)
{
    Bearers *bearers = *state;
    expect(bearers, STR("s"), NOW, "", true);
    bearers_failed(bearers, STR("fcm/main"), STR("s"), NOW + 2 * S);
    expect(bearers, STR("s"), NOW + 11 * S, "", false);
    expect(bearers, STR("s"), NOW + 12 * S, "", true);
    bearers_failed(bearers, STR("fcm/main"), STR("before"), NOW + 13 * S);
    expect(bearers, STR("s"), NOW + 14 * S, "", true); // what another secret did not get
}

static void one_whose_asker_is_lost_is_asked_for_again(void **state)
{
    Bearers *bearers = *state;
    expect(bearers, STR("s"), NOW, "", true);
    expect(bearers, STR("s"), NOW + BEARER_AGAIN_S * S, "", true);
}

static void a_rotated_secret_gets_its_own(void **state)
{
    Bearers *bearers = *state;
    assert_true(bearers_put(bearers, STR("fcm/main"), STR("s"), &one, NOW));
    expect(bearers, STR("t"), NOW, "", true);
}

static void a_refused_one_is_dropped_but_not_the_one_after_it(void **state)
{
    Bearers *bearers = *state;
    VendorBearer two = one;
    two.text = STR("two");
    assert_true(bearers_put(bearers, STR("fcm/main"), STR("s"), &one, NOW));
    bearers_drop(bearers, STR("fcm/main"), STR("one"));
    expect(bearers, STR("s"), NOW, "", true);
    assert_true(bearers_put(bearers, STR("fcm/main"), STR("s"), &two, NOW));
    bearers_drop(bearers, STR("fcm/main"), STR("one"));
    expect(bearers, STR("s"), NOW, "two", false);
}

static void one_that_is_too_long_is_not_kept(void **state)
{
    Bearers *bearers = *state;
    char text[BEARER_TEXT_MAX + 1];
    memset(text, 'x', sizeof text);
    VendorBearer much = one;
    much.text = str_of(text, sizeof text);
    expect(bearers, STR("s"), NOW, "", true);
    assert_false(bearers_put(bearers, STR("fcm/main"), STR("s"), &much, NOW));
    expect(bearers, STR("s"), NOW + S, "", false);
}

static void many_origins_are_bounded(void **state)
{
    Bearers *bearers = *state;
    Arena *arena = arena_new(0);
    bool due;
    for (int i = 0; i < BEARERS_MAX + 10; i++) {
        VendorBearer made = one;
        made.expires_us += i * S;
        Str key = str_from(arena_printf(arena, "webpush/main https://%d.example", i));
        assert_true(bearers_put(bearers, key, STR("s"), &made, NOW));
    }
    Str first = bearers_get(bearers, STR("webpush/main https://0.example"), STR("s"), NOW, &due);
    assert_int_equal(first.len, 0);
    Str last = str_from(arena_printf(arena, "webpush/main https://%d.example", BEARERS_MAX + 9));
    assert_int_equal(bearers_get(bearers, last, STR("s"), NOW, &due).len, 3);
    arena_free(arena);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(it_is_kept_until_it_expires_and_renewed_before),
        FRESH(one_that_could_not_be_had_is_asked_for_again_later),
        FRESH(one_whose_asker_is_lost_is_asked_for_again),
        FRESH(a_rotated_secret_gets_its_own),
        FRESH(a_refused_one_is_dropped_but_not_the_one_after_it),
        FRESH(one_that_is_too_long_is_not_kept),
        FRESH(many_origins_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
