// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/str.h"

static void comparing_is_bytewise_and_shorter_first(void **state)
{
    (void)state;
    assert_true(str_eq(STR("a"), str_from("a")));
    assert_false(str_eq(STR("a"), STR("ab")));
    assert_true(str_eq(STR_EMPTY, (Str){NULL, 0}));
    assert_true(str_eq_nocase(STR("Bearer"), STR("bEARER")));
    assert_false(str_eq_nocase(STR("@"), STR("`")));
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_int_equal(str_cmp(STR("ab"), STR("ab")), 0);
}

static void slices_are_clamped(void **state)
{
    (void)state;
    assert_true(str_eq(str_slice(STR("hello"), 1, 3), STR("el")));
    assert_true(str_eq(str_slice(STR("hello"), 3, 99), STR("lo")));
    assert_int_equal(str_slice(STR("hello"), 9, 99).len, 0);
    assert_int_equal(str_slice(STR("hello"), 4, 2).len, 0);
    assert_int_equal(str_slice((Str){NULL, 0}, 1, 2).len, 0);
}

static void a_part_is_found_wherever_it_stands(void **state)
{
    (void)state;
    assert_true(str_contains(STR("aab"), STR("ab")));
    assert_true(str_contains(STR("ab"), STR("ab")));
    assert_true(str_contains(STR("xaby"), STR("ab")));
    assert_false(str_contains(STR("xAby"), STR("ab")));
    assert_true(str_contains_nocase(STR("xAby"), STR("aB")));
    assert_true(str_contains_nocase(STR("yAB"), STR("ab")));
    assert_false(str_contains(STR("ba"), STR("ab")));
    assert_false(str_contains(STR("a"), STR("ab")));
    assert_false(str_contains_nocase(STR("a"), STR("ab")));
    assert_false(str_contains((Str){NULL, 0}, STR("a")));
}

static void an_empty_part_is_found_nowhere(void **state)
{
    (void)state;
    assert_false(str_contains(STR("ab"), STR("")));
    assert_false(str_contains_nocase(STR("ab"), STR("")));
    assert_false(str_contains((Str){NULL, 0}, (Str){NULL, 0}));
}

static void starts_ends_trim_and_find(void **state)
{
    (void)state;
    assert_true(str_starts(STR("ntf_01"), STR("ntf_")));
    assert_false(str_starts(STR("nt"), STR("ntf_")));
    assert_true(str_ends(STR("a.com"), STR(".com")));
    assert_false(str_ends(STR("com"), STR(".com")));
    assert_true(str_eq(str_trim(STR(" \t\r\n a b \v\f")), STR("a b")));
    assert_int_equal(str_trim(STR("  ")).len, 0);
    assert_int_equal(str_find(STR("a=b"), '='), 1);
    assert_int_equal(str_find(STR("ab"), '='), -1);
}

static void splitting_gives_each_token_once(void **state)
{
    (void)state;
    Str rest = STR("a,,b,");
    Str token;
    const char *expected[] = {"a", "", "b", ""};
    for (size_t i = 0; i < 4; i++) {
        assert_true(str_split(&rest, ',', &token));
        assert_true(str_eq(token, str_from(expected[i])));
    }
    assert_false(str_split(&rest, ',', &token));
}

static void numbers_are_whole_and_in_range(void **state)
{
    (void)state;
    int64_t value = 7;
    assert_true(str_to_i64(STR("-9223372036854775808"), &value));
    assert_true(value == INT64_MIN);
    assert_true(str_to_i64(STR("9223372036854775807"), &value));
    assert_true(value == INT64_MAX);
    assert_true(str_to_i64(STR("-0"), &value));
    assert_int_equal(value, 0);
    const char *bad[] = {
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "0x1",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(str_to_i64(str_from(bad[i]), &value));
        assert_int_equal(value, 0);
    }
}

static void a_c_string_must_fit(void **state)
{
    (void)state;
    char out[4] = "zzz";
    assert_true(str_to_c(STR("abc"), out, sizeof out));
    assert_string_equal(out, "abc");
    assert_false(str_to_c(STR("abcd"), out, sizeof out));
    assert_string_equal(out, "");
}

static void utf8_is_what_rfc_3629_says(void **state)
{
    (void)state;
    const char *good[] = {
        "",
        "plain ascii, more than eight",
        "\x7f",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "eight888\xe2\x82\xac and after"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(str_is_utf8(str_from(good[i])));
    }
    const char *bad[] = {"\x80",         "\xc0\x80",         "\xc1\xbf",         "\xc2",
                         "\xc2z",        "\xe0\x9f\xbf",     "\xed\xa0\x80",     "\xe2\x82",
                         "\xe2\x28\xa1", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                         "\xff",         "eight888\xe2\x82", "\xf0\x90\x80\x28", "seven77\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(str_is_utf8(str_from(bad[i])));
    }
}

static void a_nul_is_not_text_wherever_it_stands(void **state)
{
    (void)state;
    for (size_t at = 0; at < 20; at++) {
        char text[20];
        memset(text, 'a', sizeof text);
        text[at] = '\0';
        assert_false(str_is_utf8(str_of(text, sizeof text)));
    }
}

static void control_bytes_are_seen(void **state)
{
    (void)state;
    assert_false(str_has_control(STR("Grüße, plain text~")));
    const char *bad[] = {"a\rb", "a\nb", "\t", "\x1f", "\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_true(str_has_control(str_from(bad[i])));
    }
    assert_true(str_has_control(str_of("a\0b", 3)));
}

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(str_hash(STR_EMPTY) == UINT64_C(0xcbf29ce484222325));
    assert_true(str_hash(STR("foobar")) == UINT64_C(0x85944171f73967e8));
}

static void every_character_is_written_as_utf8(void **state)
{
    (void)state;
    static const struct {
        uint32_t character;
        const char *text;
    } rows[] = {
        {0x41, "A"},
        {0x7f, "\x7f"},
        {0x80, "\xc2\x80"},
        {0xfc, "\xc3\xbc"},
        {0x7ff, "\xdf\xbf"},
        {0x800, "\xe0\xa0\x80"},
        {0xffff, "\xef\xbf\xbf"},
        {0x10000, "\xf0\x90\x80\x80"},
        {0x10ffff, "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[STR_UTF8_MAX];
        Str written = str_of(bytes, str_utf8_write(rows[i].character, bytes));
        assert_true(str_eq(written, str_from(rows[i].text)));
        assert_int_equal(str_utf8_step(written), written.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_is_bytewise_and_shorter_first),
        cmocka_unit_test(every_character_is_written_as_utf8),
        cmocka_unit_test(slices_are_clamped),
        cmocka_unit_test(starts_ends_trim_and_find),
        cmocka_unit_test(a_part_is_found_wherever_it_stands),
        cmocka_unit_test(an_empty_part_is_found_nowhere),
        cmocka_unit_test(splitting_gives_each_token_once),
        cmocka_unit_test(numbers_are_whole_and_in_range),
        cmocka_unit_test(a_c_string_must_fit),
        cmocka_unit_test(utf8_is_what_rfc_3629_says),
        cmocka_unit_test(a_nul_is_not_text_wherever_it_stands),
        cmocka_unit_test(control_bytes_are_seen),
        cmocka_unit_test(hash_is_fnv_1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
