// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/model/sms.h"

typedef struct Row {
    const char *piece;
    size_t count; // of the piece
    const char *tail;
    bool ucs2;
    uint32_t units;
    uint32_t segments;
} Row;

// clang-format off
static const Row rows[] = {
    {"", 0, "", false, 0, 0},
    {"a", 1, "", false, 1, 1},
    {"a", 160, "", false, 160, 1},
    {"a", 161, "", false, 161, 2},
    {"a", 306, "", false, 306, 2},
    {"a", 307, "", false, 307, 3},
    {"a", 459, "", false, 459, 3},
    {"a", 460, "", false, 460, 4},
    {"\xe2\x82\xac", 80, "", false, 160, 1},          // euro: two septets
    {"\xe2\x82\xac", 81, "", false, 162, 2},
    {"a", 152, "{bbbbbbbb", false, 162, 2},           // the pair goes to the next part
    {"\xe2\x82\xac", 153, "", false, 306, 3},         // 76 pairs a part, not 76.5
    {"^{}\\[~]|\f", 1, "", false, 18, 1},
    {"@\xc2\xa3$\xc2\xa5\xc3\xa8\xc3\xa9\xc3\xb9\xc3\xac\xc3\xb2\xc3\x87\n\r", 1, "", false, 12, 1},
    {"\xce\x94_\xce\xa6\xce\x93\xce\x9b\xce\xa9\xce\xa0\xce\xa8\xce\xa3\xce\x98\xce\x9e", 1, "", false, 11, 1},
    {"\xc3\xa4\xc3\xb6\xc3\xb1\xc3\xbc\xc3\xa0\xc3\x84\xc3\x96\xc3\x91\xc3\x9c\xc2\xa7\xc2\xbf\xc2\xa1\xc3\x9f\xc3\x89", 1, "", false, 14, 1},
    {"`", 1, "", true, 1, 1},                         // the back quote is in neither table
    {"\xc3\xa7", 1, "", true, 1, 1},                  // nor is the small c with cedilla
    {"\t", 1, "", true, 1, 1},
    {"\xd8\xb3", 70, "", true, 70, 1},
    {"\xd8\xb3", 71, "", true, 71, 2},
    {"\xd8\xb3", 134, "", true, 134, 2},
    {"\xd8\xb3", 135, "", true, 135, 3},
    {"a", 160, "\xd8\xb3", true, 161, 3},
    {"\xf0\x9f\x98\x80", 35, "", true, 70, 1},        // two units each
    {"\xf0\x9f\x98\x80", 36, "", true, 72, 2},
    {"\xf0\x9f\x98\x80", 67, "", true, 134, 3},       // 33 pairs a part, not 33.5
    {"a\xff", 1, "", true, 2, 1},
};
// clang-format on

static void a_text_is_counted_as_the_standard_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Row *row = &rows[i];
        size_t len = strlen(row->piece);
        size_t tail = strlen(row->tail);
        char *text = calloc(len * row->count + tail + 1, 1);
        assert_non_null(text);
        for (size_t j = 0; j < row->count; j++) {
            memcpy(text + j * len, row->piece, len);
        }
        memcpy(text + len * row->count, row->tail, tail);
        SmsSize size = sms_measure(str_of(text, len * row->count + tail));
        if (size.ucs2 != row->ucs2 || size.units != row->units || size.segments != row->segments) {
            fail_msg(
                "row %zu: %s %u units, %u segments", i, size.ucs2 ? "UCS-2" : "GSM", size.units,
                size.segments);
        }
        free(text);
    }
}

// Whatever the text: enough segments for its units, and never more than one a character.
static void segments_are_enough_and_not_too_many(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a", "{", "\xe2\x82\xac", "\xd8\xb3", "\xf0\x9f\x98\x80", "\xc3\xa9"};
    uint32_t seed = 12345;
    for (int round = 0; round < 500; round++) {
        char text[4096];
        size_t len = 0;
        uint32_t count = 1 + (seed >> 8) % 700;
        bool wide = round % 2 == 0;
        for (uint32_t i = 0; i < count; i++) {
            seed = seed * 1103515245u + 12345u;
            const char *piece = pieces[(seed >> 16) % (wide ? 6 : 3)];
            memcpy(text + len, piece, strlen(piece));
            len += strlen(piece);
        }
        SmsSize size = sms_measure(str_of(text, len));
        uint32_t part = size.ucs2 ? SMS_UCS2_PART : SMS_GSM_PART;
        uint32_t single = size.ucs2 ? SMS_UCS2_SINGLE : SMS_GSM_SINGLE;
        assert_true(size.segments >= 1);
        assert_true(size.segments == 1 ? size.units <= single : size.units <= size.segments * part);
        assert_true(size.segments == 1 || size.units > (size.segments - 1) * (part - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_counted_as_the_standard_does),
        cmocka_unit_test(segments_are_enough_and_not_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
