// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "services/cli/import/recipient_file.h"

enum { OUT_MAX = 4 * 1024 * 1024 };

typedef struct Tally {
    size_t lines;
    size_t broken;
    size_t broken_line; // the first
    RecipientRead end;
    Error error; // the last
} Tally;

static Tally read_all(const char *text, size_t len, bool csv, Buf *out)
{
    Tally tally = {0};
    RecipientFile file;
    FILE *stream = tmpfile();
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, len, stream), len);
    rewind(stream);
    recipient_file_init(&file, stream, csv);
    do {
        tally.end = recipient_file_next(&file, out, &tally.error);
        tally.lines += tally.end == RECIPIENT_LINE;
        if (tally.end == RECIPIENT_BROKEN && tally.broken++ == 0) {
            tally.broken_line = file.line;
        }
    } while (tally.end == RECIPIENT_LINE || tally.end == RECIPIENT_BROKEN);
    recipient_file_done(&file);
    fclose(stream);
    return tally;
}

static void a_row_becomes_a_line_of_the_import(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, OUT_MAX);
    static const char TEXT[] =
        "\xEF\xBB\xBFidentity_type,identity_id,name,email,sms,minor,quiet_start,quiet_end,"
        "consent_marketing\r\n"
        "user,7,\"Doe, Jane\",jane@example.com,,true,22:00,07:00,1\r\n";
    Tally tally = read_all(TEXT, sizeof TEXT - 1, true, &out);
    assert_int_equal(tally.end, RECIPIENT_END);
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
        buf_init(&out, OUT_MAX);
        Tally tally = read_all(CASES[i][0], strlen(CASES[i][0]), true, &out);
        assert_int_equal(tally.end, RECIPIENT_FAILED);
        assert_non_null(strstr(tally.error.text, CASES[i][1]));
        buf_done(&out);
    }
}

static void a_wrong_row_is_told_and_the_rest_goes_on(void **state)
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
        Tally tally = read_all(text.ptr, text.len, true, &out);
        assert_int_equal(tally.end, RECIPIENT_END);
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
    Tally tally = read_all(text.ptr, text.len, true, &out);
    assert_int_equal(tally.end, RECIPIENT_END);
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
        Tally tally = read_all(text.ptr, text.len, csv == 1, &out);
        assert_int_equal(tally.end, RECIPIENT_END);
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
    buf_init(&out, OUT_MAX);
    static const char TEXT[] = "{\"a\":1}\r\n\n  \n{not json\n{\"b\":2}";
    Tally tally = read_all(TEXT, sizeof TEXT - 1, false, &out);
    assert_int_equal(tally.lines, 3);
    assert_int_equal(tally.broken, 0);
    assert_string_equal(buf_c(&out), "{\"a\":1}\n{not json\n{\"b\":2}\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_becomes_a_line_of_the_import),
        cmocka_unit_test(a_wrong_header_ends_the_import_and_names_the_column),
        cmocka_unit_test(a_wrong_row_is_told_and_the_rest_goes_on),
        cmocka_unit_test(line_70001_of_many_is_found_broken_in_bounded_memory),
        cmocka_unit_test(an_endless_line_is_one_broken_line),
        cmocka_unit_test(ndjson_lines_go_through_as_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
