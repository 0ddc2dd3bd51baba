// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/db/install/scram.h"

// What Postgres 15 keeps of the password "pencil".
static const char PENCIL[] =
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

static void a_verifier_is_of_one_password(void **state)
{
    (void)state;
    assert_true(scram_matches(str_from(PENCIL), STR("pencil")));
    assert_false(scram_matches(str_from(PENCIL), STR("Pencil")));
    assert_false(scram_matches(str_from(PENCIL), STR("")));
}

static void what_is_no_verifier_is_of_none(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "md5d5d0b5c8b7b3a3b6b0b9d5d0b5c8b7b3",
        "pencil",
        "SCRAM-SHA-256$",
        "SCRAM-SHA-256$0:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:x",
        ("SCRAM-SHA-256$99999999999:W22ZaJ0SNY7soEsUEjb6gQ==$"
         "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:x"),
        "SCRAM-SHA-256$4096:!!$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:x",
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d:x",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(scram_matches(str_from(rows[i]), STR("pencil")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verifier_is_of_one_password),
        cmocka_unit_test(what_is_no_verifier_is_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
