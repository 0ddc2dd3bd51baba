// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "services/cli/import/csv.h"

typedef struct Case {
    const char *text;
    CsvVerdict verdict;
    const char *fields; // joined with '|'
    size_t lines;
} Case;

// clang-format off
static const Case CASES[] = {
    {"", CSV_END, "", 0},
    {"a,b,c\nx", CSV_RECORD, "a|b|c", 1},
    {"a,b\r\nx", CSV_RECORD, "a|b", 1},
    {"a,b", CSV_RECORD, "a|b", 0},
    {"a,b\r", CSV_RECORD, "a|b", 0},
    {",", CSV_RECORD, "|", 0},
    {",,\n", CSV_RECORD, "||", 1},
    {"\n", CSV_RECORD, "", 1},
    {"\r\n", CSV_RECORD, "", 1},
    {"\"\"\n", CSV_RECORD, "", 1},
    {"\"a,b\",c\n", CSV_RECORD, "a,b|c", 1},
    {"\"a \"\"b\"\" c\"\n", CSV_RECORD, "a \"b\" c", 1},
    {"\"\"\"\"\n", CSV_RECORD, "\"", 1},
    {"\"two\nlines\",x\r\n", CSV_RECORD, "two\nlines|x", 2},
    {"\"a\",\"b\"", CSV_RECORD, "a|b", 0},
    {" a , b \n", CSV_RECORD, " a | b ", 1},
    {"\"a\"x,b\nnext", CSV_BROKEN, "", 1},
    {"a\"b\",c\nnext", CSV_BROKEN, "", 1},
    {"x,\"never closed\nnext,line\n", CSV_BROKEN, "", 1},
    {"\"a\"\rb\nnext", CSV_BROKEN, "", 1},
};
// clang-format on

static void assert_fields(const Case *c, const CsvRecord *record)
{
    Buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < record->count; i++) {
        buf_cstr(&out, i > 0 ? "|" : "");
        buf_str(&out, record->fields[i]);
    }
    assert_string_equal(buf_c(&out), c->fields);
    buf_done(&out);
}

static void a_record_is_read_as_rfc_4180_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const Case *c = &CASES[i];
        Arena *arena = arena_new(0);
        CsvRecord record;
        CsvVerdict verdict = csv_read(str_from(c->text), true, arena, &record);
        if (verdict != c->verdict) {
            fail_msg("%s: verdict %d (%s)", c->text, (int)verdict, record.reason);
        }
        assert_fields(c, &record);
        assert_int_equal(record.lines, c->lines);
        assert_true(verdict != CSV_BROKEN || record.reason[0] != '\0');
        arena_free(arena);
    }
}

// Whatever part of it has arrived, the answer is MORE or the one that the whole text gives.
static void a_cut_text_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const Case *c = &CASES[i];
        Str whole = str_from(c->text);
        for (size_t len = 0; len <= whole.len; len++) {
            Arena *arena = arena_new(0);
            CsvRecord record;
            CsvVerdict verdict = csv_read(str_slice(whole, 0, len), false, arena, &record);
            assert_true(verdict == CSV_MORE || verdict == c->verdict);
            if (verdict == CSV_RECORD) {
                assert_fields(c, &record);
            }
            arena_free(arena);
        }
    }
}

static void what_is_too_long_costs_its_first_line_only(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Buf text;
    buf_init(&text, 4 * CSV_RECORD_MAX);
    buf_cstr(&text, "a,\"open\n");
    size_t first = text.len;
    while (text.len < 2 * CSV_RECORD_MAX) {
        buf_cstr(&text, "b,c\n");
    }
    CsvRecord record;
    assert_int_equal(csv_read(buf_view(&text), false, arena, &record), CSV_BROKEN);
    assert_int_equal(record.bytes, first);
    assert_int_equal(record.lines, 1);
    buf_clear(&text);
    for (int i = 0; i < CSV_FIELDS_MAX; i++) {
        buf_cstr(&text, "f,");
    }
    buf_cstr(&text, "g\nnext");
    assert_int_equal(csv_read(buf_view(&text), false, arena, &record), CSV_BROKEN);
    assert_int_equal(record.bytes, text.len - 4);
    buf_done(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_as_rfc_4180_says),
        cmocka_unit_test(a_cut_text_is_waited_for),
        cmocka_unit_test(what_is_too_long_costs_its_first_line_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
