// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/address.h"

typedef struct Case {
    const char *given;
    const char *expected; // NULL: refused, and the reason holds the words
    const char *words;
} Case;

#define L64 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg"
#define D63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"

// clang-format off
static const Case CASES[] = {
    {"a\xe2\x80\xae" "moc.elpmaxe@example.com", NULL, "U+202E"},
    {"\xe2\x80\x8e" "a@example.com", NULL, "U+202E"},
    {"alice@example.com", "alice@example.com", NULL},
    {"Alice.B+tag@EXAMPLE.Com", "Alice.B+tag@example.com", NULL},
    {"o'brien!#$%&*-/=?^_`{|}~@x.y", "o'brien!#$%&*-/=?^_`{|}~@x.y", NULL},
    {"a@localhost", "a@localhost", NULL},
    {"hans@B\xc3\xbc" "cher.example", "hans@xn--bcher-kva.example", NULL},
    {"a@fa\xc3\x9f.example", "a@xn--fa-hia.example", NULL}, // non-transitional: not fass
    {"a@XN--BCHER-KVA.example", "a@xn--bcher-kva.example", NULL},
    {"j\xc3\xbcrgen@example.com", "j\xc3\xbcrgen@example.com", NULL},
    {L64 "@example.com", L64 "@example.com", NULL},
    {"x" L64 "@example.com", NULL, "64"},
    {"a@" D63 ".com", "a@" D63 ".com", NULL},
    {"a@x" D63 ".com", NULL, "63"},
    {"a@" D63 "." D63 "." D63 "." D63, NULL, "253"},
    {L64 "@" D63 "." D63 "." D63, NULL, "254"},
    {"", NULL, "no '@'"},
    {"no-at-sign", NULL, "no '@'"},
    {"@example.com", NULL, "before the '@'"},
    {"a@", NULL, "after the '@'"},
    {"a@b@c", NULL, "not allowed"},
    {".a@b.c", NULL, "dot"},
    {"a.@b.c", NULL, "dot"},
    {"a..b@b.c", NULL, "dot"},
    {"a b@c.d", NULL, "not allowed"},
    {"\"a b\"@c.d", NULL, "not allowed"},
    {"Alice <a@b.c>", NULL, "not allowed"},
    {"a@b.c\r\nBcc: x@y.z", NULL, "not allowed"},
    {"a\r\n@b.c", NULL, "not allowed"},
    {"a@b..c", NULL, "empty label"},
    {"a@.b", NULL, "empty label"},
    {"a@b.", NULL, "empty label"},
    {"a@-b.c", NULL, "'-'"},
    {"a@b-.c", NULL, "'-'"},
    {"a@b_c.d", NULL, "not allowed"},
    {"a@[127.0.0.1]", NULL, "not allowed"},
    {"a@xn--\x7f.c", NULL, "domain"},
    {"a@\xe2\x80\x8b.c", NULL, "domain"}, // ZERO WIDTH SPACE
    {"a\xff@b.c", NULL, "UTF-8"},
};
// clang-format on

static void an_address_is_normalised_or_refused_with_the_reason(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Str address = STR_EMPTY;
        char reason[ADDRESS_REASON_SIZE] = "";
        bool ok = address_parse(str_from(CASES[i].given), arena, &address, reason);
        if (ok != (CASES[i].expected != NULL)) {
            fail_msg("'%s': %s", CASES[i].given, ok ? "was taken" : reason);
        }
        if (ok && !str_eq(address, str_from(CASES[i].expected))) {
            fail_msg("'%s' became '%.*s'", CASES[i].given, STR_ARG(address));
        }
        if (!ok && strstr(reason, CASES[i].words) == NULL) {
            fail_msg("'%s': reason '%s' lacks '%s'", CASES[i].given, reason, CASES[i].words);
        }
    }
    arena_free(arena);
}

static void a_nul_in_an_address_is_refused(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str address = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE];
    assert_false(address_parse(str_of("a@b.c\0d", 7), arena, &address, reason));
    assert_false(address_parse(str_of("a\0@b.c", 6), arena, &address, reason));
    arena_free(arena);
}

static void a_very_long_text_is_refused_unread(void **state)
{
    (void)state;
    static char text[100000];
    memset(text, 'a', sizeof text);
    text[50000] = '@';
    Arena *arena = arena_new(0);
    Str address = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE];
    assert_false(address_parse(str_of(text, sizeof text), arena, &address, reason));
    assert_true(arena_used(arena) < 1000);
    arena_free(arena);
}

static void finding_16_what_turns_the_direction_of_writing_is_in_no_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa",
        "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
        "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9",
    };
    Arena *arena = arena_new(0);
    char reason[ADDRESS_REASON_SIZE];
    Str address = STR_EMPTY;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(
            address_name_check(str_from(arena_printf(arena, "Anna%s moc.knab", bad[i])), reason));
        assert_non_null(strstr(reason, "U+202E"));
        assert_false(address_parse(
            str_from(arena_printf(arena, "a%sb@example.com", bad[i])), arena, &address, reason));
        assert_non_null(strstr(reason, "U+202E"));
    }
    assert_false(address_name_check(STR("a\nb"), reason));
    // Neighbours of those, and names that are written from right to left.
    assert_true(address_name_check(STR("O\xe2\x80\x99Neil \xe2\x80\x8d \xe2\x81\xa5"), reason));
    assert_true(address_name_check(STR("\xd8\xb2\xd9\x87\xd8\xb1\xd8\xa7"), reason));
    assert_true(address_name_check(STR("cut \xe2\x80"), reason));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_normalised_or_refused_with_the_reason),
        cmocka_unit_test(a_nul_in_an_address_is_refused),
        cmocka_unit_test(a_very_long_text_is_refused_unread),
        cmocka_unit_test(finding_16_what_turns_the_direction_of_writing_is_in_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
