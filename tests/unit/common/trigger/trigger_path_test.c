// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/trigger/trigger_path.h"

static json_t *sample(void)
{
    json_t *data = json_loads(
        "{\"guest\":{\"email\":\"a@example.com\",\"vip\":true,\"age\":41,\"nick\":\"\",\"none\":"
        "null,"
        "\"balance\":1.5},\"guests\":[{\"id\":\"g1\"},{\"id\":\"g2\"}],\"nul\":\"a\\u0000b\"}",
        JSON_ALLOW_NUL, NULL);
    assert_non_null(data);
    return data;
}

static void what_is_a_path(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"a",           "guest.email",
                                       "guests.0.id", "Gäste.Name",
                                       "a b",         "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16"};
    static const char *const BAD[] = {
        "", ".", "a.", ".a", "a..b", "a\nb", "\xff", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17"};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_true(path_is(str_from(GOOD[i])));
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_false(path_is(str_from(BAD[i])));
    }
    char longest[PATH_MAX_BYTES + 1];
    memset(longest, 'x', sizeof longest);
    assert_true(path_is(str_of(longest, PATH_MAX_BYTES)));
    assert_false(path_is(str_of(longest, PATH_MAX_BYTES + 1)));
}

typedef struct TextCase {
    const char *path;
    const char *text; // NULL: refused
    const char *words;
} TextCase;

static void a_text_is_taken_from_where_the_path_leads(void **state)
{
    (void)state;
    static const TextCase CASES[] = {
        {"guest.email", "a@example.com", NULL},
        {"guest.age", "41", NULL},
        {"guest.vip", "true", NULL},
        {"guests.1.id", "g2", NULL},
        {"guests.2.id", NULL, "nothing at path 'guests.2.id'"},
        {"guests.-1.id", NULL, "nothing"},
        {"guests.x.id", NULL, "nothing"},
        {"guest.none", NULL, "nothing"},
        {"guest.email.x", NULL, "nothing"},
        {"unknown", NULL, "nothing"},
        {"guest", NULL, "neither text nor"},
        {"guests", NULL, "neither text nor"},
        {"guest.balance", NULL, "neither text nor"},
        {"guest.nick", NULL, "empty"},
        {"nul", NULL, "NUL"},
    };
    json_t *data = sample();
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Str text = STR_EMPTY;
        Error err = {0};
        bool ok = path_text(data, str_from(CASES[i].path), arena, &text, &err);
        if (CASES[i].text != NULL) {
            assert_true(ok);
            assert_true(str_eq(text, str_from(CASES[i].text)));
        } else {
            assert_false(ok);
            assert_int_equal(err.kind, ERROR_PERMANENT);
            if (strstr(err.text, CASES[i].words) == NULL) {
                fail_msg("%s: %s", CASES[i].path, err.text);
            }
        }
    }
    arena_free(arena);
    json_decref(data);
}

static void what_is_a_time(void **state)
{
    (void)state;
    static const char *const GOOD[][2] = {
        {"2026-12-24", "2026-12-24T00:00:00.000000Z"},
        {"2024-02-29", "2024-02-29T00:00:00.000000Z"},
        {"2026-12-24T15:00:00", "2026-12-24T15:00:00.000000Z"},
        {"2026-12-24T15:00:00.25", "2026-12-24T15:00:00.250000Z"},
        {"2026-12-24T15:00:00Z", "2026-12-24T15:00:00.000000Z"},
        {"2026-12-24T15:00:00+02:00", "2026-12-24T13:00:00.000000Z"},
    };
    static const char *const BAD[] = {
        "",
        "2026",
        "2026-13-01",
        "2025-02-29",
        "24.12.2026",
        "1798124400",
        "2026-12-24T",
        "2026-12-24T25:00:00",
        "tomorrow",
        "2026-12-24T15:00:00.1234567890123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        int64_t at_us = 0;
        char text[CLOCK_RFC3339_SIZE];
        assert_true(path_time_of(str_from(GOOD[i][0]), NULL, &at_us));
        clock_format(at_us, text);
        assert_string_equal(text, GOOD[i][1]);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        int64_t at_us = 0;
        if (path_time_of(str_from(BAD[i]), NULL, &at_us)) {
            fail_msg("'%s' was taken for a time", BAD[i]);
        }
    }
}

static void a_time_without_a_zone_is_read_from_the_wall(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"2026-12-24", "2026-12-23T23:00:00.000000Z"},
        {"2026-07-01", "2026-06-30T22:00:00.000000Z"},
        {"2026-12-24T15:00:00.5", "2026-12-24T14:00:00.500000Z"},
        {"2026-12-24T15:00:00Z", "2026-12-24T15:00:00.000000Z"},
        {"2026-12-24T15:00:00-05:00", "2026-12-24T20:00:00.000000Z"},
        {"2026-03-29T02:30:00", "2026-03-29T01:00:00.000000Z"}, // does not exist
        {"2026-10-25T02:30:00", "2026-10-25T00:30:00.000000Z"}, // exists twice
    };
    Zones *zones = zones_new();
    Zone *zone = zones_get(zones, STR("Europe/Berlin"), NULL);
    assert_non_null(zone);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int64_t at_us = 0;
        char text[CLOCK_RFC3339_SIZE];
        assert_true(path_time_of(str_from(CASES[i][0]), zone, &at_us));
        clock_format(at_us, text);
        assert_string_equal(text, CASES[i][1]);
    }
    zones_free(zones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_path),
        cmocka_unit_test(a_text_is_taken_from_where_the_path_leads),
        cmocka_unit_test(what_is_a_time),
        cmocka_unit_test(a_time_without_a_zone_is_read_from_the_wall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
