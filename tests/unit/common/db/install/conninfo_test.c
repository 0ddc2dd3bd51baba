// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/db/install/conninfo.h"

static void check(const char *url, const ConninfoPart *parts, const char *wanted)
{
    Arena *arena = arena_new(0);
    Error err = {0};
    char *made = conninfo_with(arena, url, parts, &err);
    if (wanted == NULL) {
        assert_null(made);
        assert_int_equal(err.kind, ERROR_CONFIG);
    } else {
        assert_non_null(made);
        assert_string_equal(made, wanted);
    }
    arena_free(arena);
}

static void parts_are_replaced_and_the_rest_stays(void **state)
{
    (void)state;
    const ConninfoPart login[] = {
        {"user", "stentor_ingest"}, {"password", "it's \\"}, {NULL, NULL}};
    check(
        "host=db port=5433 dbname=stentor sslmode=require", login,
        "user='stentor_ingest' password='it\\'s \\\\' dbname='stentor' host='db' port='5433' "
        "sslmode='require'");
    check(
        "postgresql://me:other@db/stentor?sslmode=require", login,
        "user='stentor_ingest' password='it\\'s \\\\' dbname='stentor' host='db' "
        "sslmode='require'");
    check("host=db", (ConninfoPart[]){{"dbname", NULL}, {NULL, NULL}}, "host='db'");
}

static void what_cannot_be_parsed_is_refused_without_its_words(void **state)
{
    (void)state;
    const ConninfoPart none[] = {{NULL, NULL}};
    Arena *arena = arena_new(0);
    Error err = {0};
    check("host='", none, NULL);
    check("hots=db", none, NULL);
    assert_null(conninfo_with(arena, "host=db password='geheim", none, &err));
    assert_null(strstr(err.text, "geheim"));
    assert_null(conninfo_get(arena, "host='", "host"));
    assert_null(conninfo_get(arena, "host=db", "dbname"));
    assert_string_equal(conninfo_get(arena, "postgresql://db/stentor", "dbname"), "stentor");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_replaced_and_the_rest_stays),
        cmocka_unit_test(what_cannot_be_parsed_is_refused_without_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
