// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/reply_words.h"

#include "tests/unit/common/vendor/vendor_case.h"

typedef struct Row {
    const char *text;
    ReplyWord word;
} Row;

// clang-format off
static const Row ROWS[] = {
    {"STOP", REPLY_WORD_STOP}, {"stop", REPLY_WORD_STOP}, {"  Stop!\r\n", REPLY_WORD_STOP}, {"Stop All.", REPLY_WORD_STOP},
    {"Abmelden", REPLY_WORD_STOP}, {"Arrêt", REPLY_WORD_STOP}, {"arrêt", REPLY_WORD_STOP}, {"baja", REPLY_WORD_STOP}, {"стоп", REPLY_WORD_STOP},
    {"Start", REPLY_WORD_START}, {"unstop", REPLY_WORD_START}, {"help", REPLY_WORD_HELP}, {"Hilfe", REPLY_WORD_HELP}, {"Info", REPLY_WORD_HELP},
    {"", REPLY_WORD_NONE}, {"!", REPLY_WORD_NONE}, {"yes", REPLY_WORD_NONE}, {"please stop", REPLY_WORD_NONE}, {"STOP IT", REPLY_WORD_NONE},
    {"non-stop", REPLY_WORD_NONE}, {"\xff", REPLY_WORD_NONE},
};
// clang-format on

static void a_whole_reply_is_a_word_in_many_languages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (reply_word(str_from(ROWS[i].text)) != ROWS[i].word) {
            fail_msg("'%s' is %d", ROWS[i].text, (int)reply_word(str_from(ROWS[i].text)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_reply_is_a_word_in_many_languages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
