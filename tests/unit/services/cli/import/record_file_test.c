// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "services/cli/import/member_row.h"
#include "services/cli/import/recipient_row.h"
#include "services/cli/import/suppress_row.h"
#include "tests/unit/services/cli/import/record_tally.h"

static void a_row_becomes_a_line_of_the_import(void **state)
{
    (void)state;
    Buf out;
    static const char TEXT[] =
        "\xEF\xBB\xBFidentity_type,identity_id,name,email,sms,minor,quiet_start,quiet_end,"
        "consent_marketing\r\n"
        "user,7,\"Doe, Jane\",jane@example.com,,true,22:00,07:00,1\r\n";
    Tally tally = read_text(&recipient_records, true, TEXT, &out);
    assert_int_equal(tally.end, RECORD_END);
    assert_int_equal(tally.lines, 1);
    assert_string_equal(
        buf_c(&out),
        "{\"identity_type\":\"user\",\"identity_id\":\"7\",\"name\":\"Doe, Jane\","
        "\"addresses\":[{\"channel\":\"email\",\"address\":\"jane@example.com\"}],\"minor\":true,"
        "\"quiet_hours\":{\"start\":\"22:00\",\"end\":\"07:00\"},"
        "\"consents\":[{\"category\":\"marketing\",\"granted\":true,\"source\":\"import\"}]}\n");
    buf_done(&out);
}

static void a_wrong_header_ends_the_import_and_names_the_column(void **state)
{
    static const char *const CASES[][2] = {
        {"email,shoe_size\n", "shoe_size"},
        {"email,email\n", "email"},
        {"consent_spam\n", "consent_spam"},
        {"\n", "no column"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Buf out;
        Tally tally = read_text(&recipient_records, true, CASES[i][0], &out);
        assert_int_equal(tally.end, RECORD_FAILED);
        assert_non_null(strstr(tally.error.text, CASES[i][1]));
        buf_done(&out);
    }
}

static void a_wrong_row_is_reported_and_the_rest_goes_on(void **state)
{
    static const char *const ROWS[][2] = {
        {"a@example.com,maybe", "minor"},
        {"a@example.com", "1 fields"},
        {"\xff@example.com,true", "UTF-8"},
        {"\"a@example.com,true", "quote"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        Buf out;
        Buf text;
        buf_init(&out, OUT_MAX);
        buf_init(&text, 4096);
        buf_printf(&text, "email,minor\nb@example.com,0\n%s\n\nc@example.com,1\n", ROWS[i][0]);
        Tally tally = read_all(&recipient_records, true, buf_view(&text), &out);
        assert_int_equal(tally.end, RECORD_END);
        assert_int_equal(tally.lines, 2);
        assert_int_equal(tally.broken, 1);
        assert_int_equal(tally.broken_line, 3);
        assert_non_null(strstr(tally.error.text, ROWS[i][1]));
        buf_done(&out);
        buf_done(&text);
    }
}

// A million lines would do the same: the window holds a record and a chunk.
static void line_70001_of_many_is_found_broken_in_bounded_memory(void **state)
{
    (void)state;
    Buf text;
    Buf out;
    buf_init(&text, 16 * 1024 * 1024);
    buf_init(&out, 64 * 1024 * 1024);
    buf_cstr(&text, "email\n");
    for (int line = 2; line <= 100000; line++) {
        buf_printf(&text, line == 70001 ? "\"user%d@example.com\n" : "user%d@example.com\n", line);
    }
    Tally tally = read_all(&recipient_records, true, buf_view(&text), &out);
    assert_int_equal(tally.end, RECORD_END);
    assert_int_equal(tally.lines, 99998);
    assert_int_equal(tally.broken, 1);
    assert_int_equal(tally.broken_line, 70001);
    buf_done(&text);
    buf_done(&out);
}

static void an_endless_line_is_one_broken_line(void **state)
{
    (void)state;
    for (int csv = 0; csv < 2; csv++) {
        Buf text;
        Buf out;
        buf_init(&text, 4 * 1024 * 1024);
        buf_init(&out, OUT_MAX);
        buf_cstr(&text, "email\n");
        while (text.len < 2 * 1024 * 1024) {
            buf_cstr(&text, "endless,endless,");
        }
        buf_cstr(&text, "\nlast@example.com\n");
        Tally tally = read_all(&recipient_records, csv == 1, buf_view(&text), &out);
        assert_int_equal(tally.end, RECORD_END);
        assert_int_equal(tally.broken, 1);
        assert_int_equal(tally.broken_line, 2);
        assert_int_equal(tally.lines, csv == 1 ? 1 : 2);
        assert_true(str_ends(
            buf_view(&out),
            csv == 1 ? STR("\"last@example.com\"}]}\n") : STR("last@example.com\n")));
        buf_done(&text);
        buf_done(&out);
    }
}

static void ndjson_lines_go_through_as_they_stand(void **state)
{
    (void)state;
    Buf out;
    static const char TEXT[] = "{\"a\":1}\r\n\n  \n{not json\n{\"b\":2}";
    Tally tally = read_text(&recipient_records, false, TEXT, &out);
    assert_int_equal(tally.lines, 3);
    assert_int_equal(tally.broken, 0);
    assert_string_equal(buf_c(&out), "{\"a\":1}\n{not json\n{\"b\":2}\n");
    buf_done(&out);
}

// A form exported from a spreadsheet may end its rows early; whether that is one is the kind's.
static void a_row_may_end_early_only_where_its_kind_says_so(void **state)
{
    (void)state;
    const RecordKind *const kinds[] = {&member_records, &recipient_records};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        Buf out;
        const char *text = i == 0 ? "to,order\na@example.com\n" : "email,name\na@example.com\n";
        Tally tally = read_text(kinds[i], true, text, &out);
        assert_int_equal(tally.broken, 1);
        assert_int_equal(tally.broken_line, 2);
        assert_string_equal(tally.error.text, "1 fields, the header has 2");
        buf_done(&out);
    }
    Record record;
    RecordFile file;
    Error err = {0};
    static const char TEXT[] = "address,note\na@example.com\nb@example.com,x,y\n";
    FILE *stream = fmemopen((void *)(uintptr_t)TEXT, sizeof TEXT - 1, "rb");
    record_file_init(&file, &suppress_records, stream, true);
    assert_int_equal(record_file_next(&file, &record, &err), RECORD_READ);
    assert_true(str_eq(record.fields[0], STR("a@example.com")));
    assert_int_equal(record.fields[1].len, 0);
    assert_int_equal(record_file_next(&file, &record, &err), RECORD_BROKEN);
    assert_int_equal(file.line, 3);
    assert_int_equal(record_file_next(&file, &record, &err), RECORD_END);
    record_file_close(&file);
}

static void the_form_is_the_flag_s_or_the_ending_s(void **state)
{
    (void)state;
    static const struct {
        const char *flag, *path, *otherwise, *is; // is NULL: refused
    } CASES[] = {
        {NULL, "a.csv", NULL, "csv"},      {NULL, "a.ndjson", "csv", "ndjson"},
        {NULL, "a.jsonl", NULL, "ndjson"}, {NULL, "-", "csv", "csv"},
        {NULL, "-", NULL, NULL},           {"ndjson", "a.csv", NULL, "ndjson"},
        {"csv", "a.ndjson", "csv", "csv"}, {"xml", "a.csv", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool csv = false;
        Error err = {0};
        bool ok = record_format(CASES[i].flag, CASES[i].path, CASES[i].otherwise, &csv, &err);
        assert_int_equal(ok, CASES[i].is != NULL);
        assert_int_equal(err.kind, ok ? ERROR_NONE : ERROR_USAGE);
        assert_true(!ok || csv == (strcmp(CASES[i].is, "csv") == 0));
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    RecordFile file;
    Error err = {0};
    assert_false(record_file_open(&file, &member_records, "/nowhere/a.csv", true, &err));
    assert_int_equal(err.kind, ERROR_USAGE);
    assert_non_null(strstr(err.text, "/nowhere/a.csv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_becomes_a_line_of_the_import),
        cmocka_unit_test(a_wrong_header_ends_the_import_and_names_the_column),
        cmocka_unit_test(a_wrong_row_is_reported_and_the_rest_goes_on),
        cmocka_unit_test(line_70001_of_many_is_found_broken_in_bounded_memory),
        cmocka_unit_test(an_endless_line_is_one_broken_line),
        cmocka_unit_test(ndjson_lines_go_through_as_they_stand),
        cmocka_unit_test(a_row_may_end_early_only_where_its_kind_says_so),
        cmocka_unit_test(the_form_is_the_flag_s_or_the_ending_s),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
