// SPDX-License-Identifier: Apache-2.0
// The lines of a file as they come: tests/unit/services/cli/import/suppress_row_test.c.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/api/suppress_line.h"

static const SuppressReading READING = {
    .defaults = {.channel = CHANNEL_EMAIL, .reason = SUPPRESSION_OPT_OUT},
    .tenant = {"acme", 4},
    .hash_key = {"0123456789abcdef0123456789abcdef", 32},
};

static void a_line_becomes_an_entry(void **state)
{
    (void)state;
    Error err = {0};
    SuppressLine line;
    Arena *arena = arena_new(0);
    Str text =
        STR("{\"address\":\"Alice@EXAMPLE.com\",\"category\":\"any\",\"note\":\"n\",\"x\":1}");
    assert_true(suppress_line_parse(&READING, text, arena, &line, &err));
    const Stentor__V1__Suppression *entry =
        suppress_line_entry(&line, STR("acme"), 7, STR("k1"), arena);
    assert_string_equal(entry->tenant, "acme");
    assert_string_equal(entry->created_by, "k1");
    assert_string_equal(entry->note, "n");
    assert_int_equal(entry->reason, SUPPRESSION_OPT_OUT);
    assert_int_equal(entry->created_at_us, 7);
    assert_memory_equal(entry->address_hash.data, line.hash, SUPPRESSION_HASH_LEN);
    assert_null(strstr(entry->masked_address, "lice"));
    arena_free(arena);
}

static void a_bad_line_gets_a_reason(void **state)
{
    static const char *const cases[][2] = {
        {"", "not one JSON object"},
        {"[]", "not one JSON object"},
        {"{\"address\":7}", "address: must be a string"},
        {"{\"address\":\"a@example.com\",\"address\":\"b@example.com\"}", "not one JSON object"},
        {"{\"address_hash\":\"00\"}", "address_hash: "},
        {"{\"address\":\"a\xff@example.com\"}", "not UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Error err = {0};
        SuppressLine line;
        Arena *arena = arena_new(0);
        assert_false(suppress_line_parse(&READING, str_from(cases[i][0]), arena, &line, &err));
        assert_non_null(strstr(err.text, cases[i][1]));
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_becomes_an_entry),
        cmocka_unit_test(a_bad_line_gets_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
