// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/service/health/heads.h"

static const Head BUILT[] = {{"stentor", 5}, {"ingest", 8}};

static HeadsVerdict judge(const Head *there, size_t count, const char *said)
{
    char text[240];
    HeadsVerdict verdict =
        heads_compare(BUILT, sizeof BUILT / sizeof *BUILT, there, count, text, sizeof text);
    if (said == NULL) {
        assert_string_equal(text, "");
    } else {
        assert_non_null(strstr(text, said));
    }
    return verdict;
}

static void the_same_migrations_fit(void **state)
{
    (void)state;
    const Head there[] = {{"ingest", 8}, {"stentor", 5}};
    assert_int_equal(judge(there, 2, NULL), HEADS_FIT);
}

static void what_is_missing_is_named_before_what_is_too_much(void **state)
{
    (void)state;
    const Head older[] = {{"ingest", 7}, {"stentor", 6}};
    assert_int_equal(judge(older, 2, "migration ingest/0008 is missing"), HEADS_OLDER);
    assert_int_equal(judge(older, 0, "migration stentor/0001 is missing"), HEADS_OLDER);
}

static void what_this_program_does_not_know_is_newer(void **state)
{
    (void)state;
    const Head newer[] = {{"ingest", 12}, {"stentor", 5}};
    const Head schema[] = {{"ingest", 8}, {"stentor", 5}, {"inbox", 1}};
    assert_int_equal(
        judge(newer, 2, "it has migration ingest/0012, this program knows 0008"), HEADS_NEWER);
    assert_int_equal(
        judge(schema, 3, "it has migration inbox/0001, this program knows 0000"), HEADS_NEWER);
}

static void the_programs_own_are_those_of_the_tree(void **state)
{
    (void)state;
    size_t count = 0;
    const Head *built = heads_built(&count);
    assert_int_equal(count, 14);
    for (size_t i = 0; i < count; i++) {
        assert_true(built[i].number > 0);
    }
    assert_true(built[0].number >= 4); // stentor/0004 has the function that is asked
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_migrations_fit),
        cmocka_unit_test(what_is_missing_is_named_before_what_is_too_much),
        cmocka_unit_test(what_this_program_does_not_know_is_newer),
        cmocka_unit_test(the_programs_own_are_those_of_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
