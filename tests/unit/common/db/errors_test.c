// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/db/errors.h"

typedef struct Case {
    const char *sqlstate;
    ErrorKind kind;
} Case;

static const Case CASES[] = {
    {"08006", ERROR_TRANSIENT}, // connection failure
    {"40001", ERROR_TRANSIENT}, // serialization
    {"40P01", ERROR_TRANSIENT}, // deadlock
    {"53300", ERROR_TRANSIENT}, // too many connections
    {"55P03", ERROR_TRANSIENT}, // lock not available
    {"57014", ERROR_TRANSIENT}, // statement timeout
    {"57P01", ERROR_TRANSIENT}, // admin shutdown
    {"25006", ERROR_TRANSIENT}, // read-only after a failover
    {"XX000", ERROR_TRANSIENT}, // not known
    {"22021", ERROR_PERMANENT}, // bad UTF-8
    {"23505", ERROR_PERMANENT}, // unique
    {"54000", ERROR_PERMANENT}, // too large for an index
    {"P0001", ERROR_PERMANENT}, // raised by our own function
    {"28P01", ERROR_CONFIG},    // password
    {"3D000", ERROR_CONFIG},    // no such database
    {"42P01", ERROR_CONFIG},    // no such table
    {"42501", ERROR_CONFIG},    // no right
};

static void each_class_of_error_says_what_to_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        if (db_error_kind(CASES[i].sqlstate) != CASES[i].kind) {
            fail_msg("%s", CASES[i].sqlstate);
        }
    }
}

static void no_answer_at_all_is_transient(void **state)
{
    (void)state;
    assert_int_equal(db_error_kind(NULL), ERROR_TRANSIENT);
}

static void finding_16_a_server_that_cannot_write_is_known_by_its_state(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool refuses;
    } rows[] = {
        {"'ingest_accept': could not extend file \"base/1/2\": No space left on device (53100)",
         true},
        {"'x': cannot execute INSERT in a read-only transaction (25006)", true},
        {"'x': out of memory (53200)", true},
        {"'x': sorry, too many clients already (53300)", false},
        {"'x': says '(53100)' of another (23505)", false},
        {"(53100", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Error err = {0};
        (void)error_set(&err, ERROR_TRANSIENT, "%s", rows[i].text);
        assert_int_equal(db_error_refuses_writes(&err), rows[i].refuses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_class_of_error_says_what_to_do),
        cmocka_unit_test(no_answer_at_all_is_transient),
        cmocka_unit_test(finding_16_a_server_that_cannot_write_is_known_by_its_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
