// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/checksum.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

enum { LONGEST = 400, OFFSETS = 17 };

// By the definition, a bit at a time.
static uint32_t slow_crc32(uint32_t before, const uint8_t *bytes, size_t len)
{
    uint32_t crc = ~before;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0xEDB88320) : 0);
        }
    }
    return ~crc;
}

static void fill(uint8_t *bytes, size_t len)
{
    uint32_t random = 88172645;
    for (size_t i = 0; i < len; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(random >> 24);
    }
}

static void the_crc_of_the_standard_s_example(void **state)
{
    (void)state;
    assert_int_equal(parquet_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(parquet_crc32(0, "", 0), 0);
}

static void a_crc_of_every_length_and_alignment_is_that_of_the_definition(void **state)
{
    (void)state;
    uint8_t bytes[LONGEST + OFFSETS];
    fill(bytes, sizeof bytes);
    for (size_t len = 0; len <= LONGEST; len++) {
        for (size_t from = 0; from < OFFSETS; from++) {
            assert_int_equal(parquet_crc32(0, bytes + from, len), slow_crc32(0, bytes + from, len));
        }
    }
}

static void a_crc_goes_on_from_the_one_before(void **state)
{
    (void)state;
    uint8_t bytes[LONGEST];
    fill(bytes, sizeof bytes);
    uint32_t whole = slow_crc32(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= LONGEST; cut++) {
        uint32_t first = parquet_crc32(0, bytes, cut);
        assert_int_equal(parquet_crc32(first, bytes + cut, LONGEST - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crc_of_the_standard_s_example),
        cmocka_unit_test(a_crc_of_every_length_and_alignment_is_that_of_the_definition),
        cmocka_unit_test(a_crc_goes_on_from_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
