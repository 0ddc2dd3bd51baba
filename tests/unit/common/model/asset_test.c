// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "common/model/asset.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void the_first_bytes_say_the_type(void **state)
{
    (void)state;
    // clang-format off
    const struct { Str bytes; AssetType type; } rows[] = {
        {STR("\x89PNG\r\n\x1a\n...."),        ASSET_PNG},
        {STR("\x89PNG\n\x1a\n...."),          ASSET_NONE}, // a transfer as text has eaten a byte
        {STR("\xff\xd8\xff\xe0...."),         ASSET_JPEG},
        {STR("\xff\xd8"),                     ASSET_NONE},
        {STR("GIF87a...."),                   ASSET_GIF},
        {STR("GIF89a"),                       ASSET_GIF},
        {STR("GIF88a"),                       ASSET_NONE},
        {STR("RIFF\x24\0\0\0WEBPVP8 "),       ASSET_WEBP},
        {STR("RIFF\x24\0\0\0WAVEfmt "),       ASSET_NONE},
        {STR("RIFF"),                         ASSET_NONE},
        {STR("<svg xmlns=\"x\"/>"),           ASSET_NONE},
        {STR("body { color: red }"),          ASSET_NONE},
        {STR(""),                             ASSET_NONE},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (asset_type_of(rows[i].bytes) != rows[i].type) {
            fail_msg("row %zu is '%s'", i, asset_type_name(asset_type_of(rows[i].bytes)));
        }
    }
}

static void what_begins_as_a_tag_is_markup(void **state)
{
    (void)state;
    assert_true(asset_is_markup(STR("<svg onload='x()'/>")));
    assert_true(asset_is_markup(STR(" \n<?xml version=\"1.0\"?><svg/>")));
    assert_true(asset_is_markup(STR("\xef\xbb\xbf<svg/>")));
    assert_false(asset_is_markup(STR("\x89PNG\r\n\x1a\n<svg/>")));
    assert_false(asset_is_markup(STR("")));
}

static void a_name_is_fit_for_a_subject(void **state)
{
    (void)state;
    static const char *const good[] = {"logo.png", "a", "logo", "logo.v2.2026.png", "_-9"};
    static const char *const wrong[] = {
        "",        ".png",    "logo.",     "logo..png",   "Logo.png",
        "a b.png", "a/b.png", "logo.png*", "l\xc3\xb6go", ".."};
    char longest[ASSET_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(asset_is_name(str_from(good[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (asset_is_name(str_from(wrong[i]))) {
            fail_msg("'%s' was taken", wrong[i]);
        }
    }
    (void)snprintf(longest, sizeof longest, "%0*d", ASSET_NAME_MAX, 0);
    assert_true(asset_is_name(str_from(longest)));
    (void)snprintf(longest, sizeof longest, "%0*d", ASSET_NAME_MAX + 1, 0);
    assert_false(asset_is_name(str_from(longest)));
}

static void a_type_has_one_name_and_one_extension(void **state)
{
    (void)state;
    for (AssetType type = ASSET_PNG; type < ASSET_TYPE_COUNT; type++) {
        assert_int_equal(asset_type_from_name(str_from(asset_type_name(type))), type);
        assert_int_equal(asset_type_from_extension(str_from(asset_type_extension(type))), type);
    }
    assert_int_equal(asset_type_from_name(STR("")), ASSET_NONE);
    assert_int_equal(asset_type_from_name(STR("image/svg+xml")), ASSET_NONE);
    assert_int_equal(asset_type_from_extension(STR("")), ASSET_NONE);
}

static void a_path_is_read_as_it_is_written(void **state)
{
    (void)state;
    char path[ASSET_PLACE_SIZE];
    char key[ASSET_PLACE_SIZE];
    AssetPlace place = {.tenant = STR("acme"), .hex = STR(HEX), .type = ASSET_JPEG};
    AssetPlace read = {.type = ASSET_NONE};
    asset_path(&place, path);
    assert_string_equal(path, "/v1/assets/acme/" HEX ".jpg");
    assert_true(asset_path_parse(str_from(path), &read));
    assert_true(str_eq(read.tenant, STR("acme")) && str_eq(read.hex, STR(HEX)));
    assert_int_equal(read.type, ASSET_JPEG);
    asset_object_key(read.tenant, read.hex, key);
    assert_string_equal(key, "template-assets/acme/" HEX);
}

static void another_path_is_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "/v1/assets/",
        "/v1/assets/acme",
        "/v1/assets/acme/",
        "/v1/assets/acme/" HEX,
        "/v1/assets/acme/" HEX ".",
        "/v1/assets/acme/" HEX ".svg",
        "/v1/assets/acme/" HEX ".png.png",
        "/v1/assets/acme/" HEX ".png/x",
        "/v1/assets/acme/a" HEX ".png",
        "/v1/assets/acme/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef.png",
        "/v1/assets/acme/../" HEX ".png",
        "/v1/assets/../" HEX ".png",
        "/v1/assets/ACME/" HEX ".png",
        "/v1/assets//" HEX ".png",
        "/v1/templates/acme/" HEX ".png",
    };
    AssetPlace read;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (asset_path_parse(str_from(wrong[i]), &read)) {
            fail_msg("'%s' was taken", wrong[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_bytes_say_the_type),
        cmocka_unit_test(what_begins_as_a_tag_is_markup),
        cmocka_unit_test(a_name_is_fit_for_a_subject),
        cmocka_unit_test(a_type_has_one_name_and_one_extension),
        cmocka_unit_test(a_path_is_read_as_it_is_written),
        cmocka_unit_test(another_path_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
