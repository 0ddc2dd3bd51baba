// SPDX-License-Identifier: Apache-2.0
// The canonical text against one that is made a byte at a time.
#include "common/parquet/row_digest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

enum { LONGEST = 40 };

static const ParquetColumn columns[] = {
    {.name = "number", .type = PARQUET_I64, .optional = true},
    {.name = "text", .type = PARQUET_STRING, .optional = true},
    {.name = "yes", .type = PARQUET_BOOL, .optional = true},
};

static void assert_text(RowDigest *digest, const ParquetValue *values, const char *wanted)
{
    row_digest_add(digest, values);
    Str text = row_digest_text(digest);
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.ptr, wanted, text.len);
}

static void a_number_of_every_length_is_decimal(void **state)
{
    RowDigest *digest = row_digest_new(columns, 1);
    const int64_t extremes[] = {0, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    char wanted[32];
    (void)state;
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        (void)snprintf(wanted, sizeof wanted, "%" PRId64, extremes[i]);
        assert_text(digest, &(ParquetValue){.number = extremes[i]}, wanted);
    }
    for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
        const int64_t near[] = {power - 1, power, power + 1, 7 * power, -power, 1 - power};
        for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
            (void)snprintf(wanted, sizeof wanted, "%" PRId64, near[i]);
            assert_text(digest, &(ParquetValue){.number = near[i]}, wanted);
        }
    }
    row_digest_free(digest);
}

static size_t escape(char *out, const char *text, size_t len)
{
    char *from = out;
    for (size_t i = 0; i < len; i++) {
        const char *special = strchr("\nn\tt\\\\", text[i]);
        bool escaped = text[i] == '\n' || text[i] == '\t' || text[i] == '\\';
        if (escaped) {
            *out++ = '\\';
        }
        *out++ = escaped ? special[1] : text[i];
    }
    *out = '\0';
    return (size_t)(out - from);
}

static void what_is_escaped_is_found_in_every_place_of_texts_of_every_length(void **state)
{
    RowDigest *digest = row_digest_new(columns, 3);
    char text[LONGEST], wanted[2 * LONGEST + 16];
    (void)state;
    for (size_t len = 1; len <= LONGEST; len++) {
        for (size_t at = 0; at < len; at++) {
            for (size_t next = at; next < len; next++) {
                memset(text, 'n', len);
                text[at] = '\\';
                text[next] = "\n\t\\"[next % 3];
                memcpy(wanted, "7\t", 2);
                size_t used = 2 + escape(wanted + 2, text, len);
                (void)snprintf(wanted + used, sizeof wanted - used, "\ttrue");
                const ParquetValue values[] = {
                    {.number = 7}, {.bytes = str_of(text, len)}, {.number = 1}};
                assert_text(digest, values, wanted);
            }
        }
    }
    row_digest_free(digest);
}

static void a_null_and_an_empty_text_are_not_the_same(void **state)
{
    RowDigest *digest = row_digest_new(columns, 3);
    (void)state;
    const ParquetValue values[] = {{.null = true}, {.bytes = STR_EMPTY}, {.number = 0}};
    assert_text(digest, values, "\\N\t\tfalse");
    const ParquetValue nulls[] = {{.number = 1}, {.null = true}, {.null = true}};
    assert_text(digest, nulls, "1");
    row_digest_free(digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_of_every_length_is_decimal),
        cmocka_unit_test(what_is_escaped_is_found_in_every_place_of_texts_of_every_length),
        cmocka_unit_test(a_null_and_an_empty_text_are_not_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
