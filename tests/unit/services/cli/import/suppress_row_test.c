// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/api/suppress_line.h"
#include "common/codec/hash.h"
#include "services/cli/import/suppress_row.h"

static const Str HASH_KEY = {"0123456789abcdef0123456789abcdef", 32};
#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static Arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

// What the API makes of the file's record. header NULL: NDJSON. false also for what the file itself
// refuses.
static bool parse(const char *header, const char *text, SuppressLine *ret, Error *err)
{
    SuppressReading reading = {
        .defaults = {.channel = CHANNEL_EMAIL, .reason = SUPPRESSION_MANUAL},
        .tenant = STR("acme"),
        .hash_key = HASH_KEY,
    };
    RecordFile file;
    Buf out;
    buf_init(&out, 1024 * 1024);
    char *whole = arena_printf(
        arena, "%s%s%s", header != NULL ? header : "", header != NULL ? "\n" : "", text);
    FILE *stream = fmemopen(whole, strlen(whole), "rb");
    record_file_init(&file, &suppress_records, stream, header != NULL);
    bool ok = record_file_next_line(&file, &out, err) == RECORD_READ &&
              suppress_line_parse(&reading, str_trim(buf_view(&out)), arena, ret, err);
    buf_done(&out);
    record_file_close(&file);
    return ok;
}

static void a_csv_line_takes_its_columns_in_their_order(void **state)
{
    (void)state;
    SuppressLine line;
    Error err = {0};
    uint8_t hash[ADDRESS_HASH_LEN];
    assert_true(parse(
        "Reason, shoe size ,ADDRESS,note,category,expires_at",
        "complaint,43,Alice@EXAMPLE.com,\"said \"\"no\"\", loudly\",marketing,2030-01-01T00:00:00Z",
        &line, &err));
    assert_int_equal(line.reason, SUPPRESSION_COMPLAINT);
    assert_int_equal(line.category, CATEGORY_MARKETING);
    assert_true(str_eq(line.note, STR("said \"no\", loudly")));
    assert_true(line.expires_at_us == INT64_C(1893456000000000));
    address_hash(HASH_KEY, STR("acme"), CHANNEL_EMAIL, STR("alice@example.com"), hash);
    assert_memory_equal(line.hash, hash, sizeof hash);
}

static void what_a_line_leaves_out_is_the_defaults(void **state)
{
    (void)state;
    SuppressLine line;
    Error err = {0};
    assert_true(parse("address,reason,category", "a@example.com", &line, &err));
    assert_int_equal(line.reason, SUPPRESSION_MANUAL);
    assert_int_equal(line.channel, CHANNEL_EMAIL);
    assert_int_equal(line.category, CATEGORY_NONE);
}

static void an_export_comes_back_by_its_hash(void **state)
{
    (void)state;
    SuppressLine line;
    Error err = {0};
    assert_true(parse(
        NULL,
        "{\"id\":\"sup_1\",\"address\":\"ali***@example.com\",\"address_hash\":\"" HEX
        "\",\"channel\":\"sms\",\"category\":null,\"released_at\":null,\"reason\":\"opt_out\"}",
        &line, &err));
    assert_int_equal(line.hash[31], 31);
    assert_int_equal(line.channel, CHANNEL_SMS);
    assert_false(line.released);
    assert_true(parse(NULL, "{\"address_hash\":\"" HEX "\",\"released_at\":\"x\"}", &line, &err));
    assert_true(line.released);
}

static void a_broken_line_names_its_field(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        const char *line;
        const char *expected;
    } CASES[] = {
        {"address", "nonsense", "address: "},
        {"address,note", ",x", "address: missing"},
        {"address", "\"a@example.com", "a quote is not closed"},
        {"address", "\"a@example.com\"x", "after a closing quote"},
        {"address", "a@example.com,b", "2 fields, the header has 1"},
        {"address,reason", "a@example.com,because", "reason: "},
        {"address,channel", "a@example.com,pigeon", "channel: "},
        {"address,category", "a@example.com,fun", "category: "},
        {"address,expires_at", "a@example.com,soon", "expires_at: "},
        {"address_hash", "00", "address_hash: "},
        {"address", "a\xff@example.com", "not UTF-8"},
        {NULL, "[]", "not one JSON object"},
        {NULL, "{\"address\":", "not one JSON object"},
        {NULL, "{\"address\":7}", "address: must be a string"},
        {NULL, "{}", "address: missing"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        SuppressLine line;
        Error err = {0};
        assert_false(parse(CASES[i].header, CASES[i].line, &line, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, CASES[i].expected));
    }
}

static void a_header_must_name_an_address_and_no_column_twice(void **state)
{
    (void)state;
    static const char *const BAD[] = {"reason,note", "address,address", "a@example.com"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        SuppressLine line;
        Error err = {0};
        assert_false(parse(BAD[i], "a@example.com", &line, &err));
        assert_non_null(strstr(err.text, "'address'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_csv_line_takes_its_columns_in_their_order, begin, end),
        cmocka_unit_test_setup_teardown(what_a_line_leaves_out_is_the_defaults, begin, end),
        cmocka_unit_test_setup_teardown(an_export_comes_back_by_its_hash, begin, end),
        cmocka_unit_test_setup_teardown(a_broken_line_names_its_field, begin, end),
        cmocka_unit_test_setup_teardown(
            a_header_must_name_an_address_and_no_column_twice, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
