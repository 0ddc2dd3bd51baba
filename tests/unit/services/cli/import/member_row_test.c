// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "services/cli/import/member_row.h"

#include <string.h>

#include "tests/unit/services/cli/import/record_tally.h"

static void a_row_is_a_member_and_its_other_columns_are_variables(void **state)
{
    (void)state;
    Buf out;
    Tally tally = read_text(
        &member_records, true,
        "to,name,order,variables.name,recipient_id\n"
        "a@example.com,Ann,\"7, or 8\",x,\nb@example.com,,,,rcp_1\n",
        &out);
    assert_int_equal(tally.end, RECORD_END);
    assert_string_equal(
        buf_c(&out),
        "{\"to\":\"a@example.com\",\"name\":\"Ann\",\"variables\":{\"order\":\"7, or "
        "8\",\"name\":\"x\"}}\n"
        "{\"to\":\"b@example.com\",\"recipient_id\":\"rcp_1\",\"variables\":{\"order\":\"\","
        "\"name\":\"\"}}\n");
    buf_done(&out);
}

// C48: a batch file says of each address where and when its owner consented.
static void a_member_s_consent_is_made_of_its_two_columns(void **state)
{
    (void)state;
    Buf out;
    (void)read_text(
        &member_records, true,
        "to,consent_at,n,consent_source\n"
        "a@example.com,2026-05-01T00:00:00Z,1,form\nb@example.com,,2,\nc@example.com,,3,fair\n",
        &out);
    assert_string_equal(
        buf_c(&out),
        "{\"to\":\"a@example.com\",\"consent\":{\"given_at\":\"2026-05-01T00:00:00Z\",\"source\":"
        "\"form\"},\"variables\":{\"n\":\"1\"}}\n"
        "{\"to\":\"b@example.com\",\"variables\":{\"n\":\"2\"}}\n"
        "{\"to\":\"c@example.com\",\"consent\":{\"source\":\"fair\"},\"variables\":{\"n\":\"3\"}}"
        "\n");
    buf_done(&out);
}

static void a_member_without_variables_has_none(void **state)
{
    (void)state;
    Buf out;
    (void)read_text(&member_records, true, "recipient_id\nrcp_1\n", &out);
    assert_string_equal(buf_c(&out), "{\"recipient_id\":\"rcp_1\",\"variables\":{}}\n");
    buf_done(&out);
}

static void a_header_must_say_whom_to_reach_and_name_each_column_once(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"name,order\n", "neither a column 'to' nor 'recipient_id'"},
        {"to,order,order\n", "'order' twice"},
        {"to,,order\n", "column 2 has no name"},
        {"to,0123456789012345678901234567890123456789012345678901234567890123\n", "column 2"},
        {"\"to\n", "quote"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Buf out;
        Tally tally = read_text(&member_records, true, CASES[i][0], &out);
        assert_int_equal(tally.end, RECORD_FAILED);
        if (strstr(tally.error.text, CASES[i][1]) == NULL) {
            fail_msg("'%s' does not say '%s'", tally.error.text, CASES[i][1]);
        }
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_a_member_and_its_other_columns_are_variables),
        cmocka_unit_test(a_member_s_consent_is_made_of_its_two_columns),
        cmocka_unit_test(a_member_without_variables_has_none),
        cmocka_unit_test(a_header_must_say_whom_to_reach_and_name_each_column_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
