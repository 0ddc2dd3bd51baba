// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_voice.h"

#include "tests/unit/common/vendor/vendor_case.h"

static void markup_is_read_out_as_it_stands(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str escaped = vendor_voice_escape(
        STR("</Say><Dial>+1900</Dial> \"R&D\" \x01 \x7f\nGr\xc3\xbc\xc3\x9f"
            "e"),
        arena);
    assert_string_equal(
        arena_cstr(arena, escaped),
        "&lt;/Say&gt;&lt;Dial&gt;+1900&lt;/Dial&gt; \"R&amp;D\"     Gr\xc3\xbc\xc3\x9f"
        "e");
    arena_free(arena);
}

static void a_locale_is_the_language_of_a_voice(void **state)
{
    (void)state;
    static const char *const languages[][2] = {
        {"", ""},           {"de", "de-DE"},    {"de-AT", "de-DE"}, {"de_CH", "de-DE"},
        {"EN-gb", "en-GB"}, {"en", "en-US"},    {"en-ZA", "en-US"}, {"pt-PT", "pt-PT"},
        {"pt", "pt-BR"},    {"no", "nb-NO"},    {"nn-NO", "nb-NO"}, {"fr-CA", "fr-CA"},
        {"uk-UA", "uk-UA"}, {"zh_CN", "zh-CN"}, {"x", "x"},         {"-", "-"}};
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        Str found = vendor_voice_language(str_from(languages[i][0]), arena);
        assert_string_equal(arena_cstr(arena, found), languages[i][1]);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_read_out_as_it_stands),
        cmocka_unit_test(a_locale_is_the_language_of_a_voice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
