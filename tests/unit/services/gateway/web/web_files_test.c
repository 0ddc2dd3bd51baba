// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/web/web_files.h"

static const WebFile ALL = {.plain = {"plain", 5}, .gzip = {"gz", 2}, .brotli = {"b", 1}};
static const WebFile NO_BROTLI = {.plain = {"plain", 5}, .gzip = {"gz", 2}};

static void the_smallest_form_that_is_taken_is_chosen(void **state)
{
    (void)state;
    assert_int_equal(web_choose(&ALL, STR("gzip, deflate, br, zstd")), WEB_BROTLI);
    assert_int_equal(web_choose(&NO_BROTLI, STR("gzip, deflate, br, zstd")), WEB_GZIP);
    assert_int_equal(web_choose(&ALL, STR("gzip")), WEB_GZIP);
    assert_int_equal(web_choose(&ALL, STR("GZIP;q=0.5 , BR ; q=0.1")), WEB_BROTLI);
    assert_int_equal(web_choose(&ALL, STR_EMPTY), WEB_PLAIN);
    assert_int_equal(web_choose(&ALL, STR("identity, *;q=0")), WEB_PLAIN);
}

static void a_form_of_weight_0_is_not_taken(void **state)
{
    (void)state;
    assert_int_equal(web_choose(&ALL, STR("br;q=0, gzip;q=0.001")), WEB_GZIP);
    assert_int_equal(web_choose(&ALL, STR("br; q=0.000,gzip;q=0.")), WEB_PLAIN);
    assert_int_equal(web_choose(&ALL, STR(",;,;;,gzipped,xbr")), WEB_PLAIN);
}

static void the_module_is_there_and_compressed_forms_are_smaller(void **state)
{
    (void)state;
    WebFiles files = {.demo = true};
    const WebFile *module = web_find(&files, STR("/inbox/stentor-inbox.js"));
    assert_non_null(module);
    assert_int_equal(module->kind, WEB_MODULE);
    assert_true(str_starts(module->plain, STR("// SPDX-License-Identifier: Apache-2.0\n")));
    for (size_t i = 0; i < web_table_count; i++) {
        const WebFile *file = &web_table[i];
        assert_ptr_equal(web_find(&files, str_from(file->path)), file);
        assert_true(web_is_path(str_from(file->path)));
        assert_int_equal(strlen(file->hash), 64);
        assert_memory_equal(file->gzip.ptr, "\x1f\x8b", 2);
        assert_true(file->gzip.len < file->plain.len && file->brotli.len < file->plain.len);
    }
    assert_null(web_find(&files, STR("/inbox/")));
    assert_null(web_find(&files, STR("/inbox/stentor-inbox.js/")));
}

static void the_demo_page_is_shown_where_it_is_turned_on(void **state)
{
    (void)state;
    WebFiles shown = {.demo = true}, hidden = {.demo = false};
    for (size_t i = 0; i < web_table_count; i++) {
        Str path = str_from(web_table[i].path);
        bool demo = str_eq(path, STR("/inbox/demo")) || str_starts(path, STR("/inbox/assets/"));
        assert_true((web_find(&hidden, path) == NULL) == demo);
        assert_non_null(web_find(&shown, path));
    }
}

static void the_frame_of_foreign_content_is_there_however_the_gateway_was_built(void **state)
{
    (void)state;
    WebFiles files = {.demo = false};
    const WebFile *frame = web_find(&files, STR("/console/preview"));
    assert_non_null(frame);
    assert_int_equal(frame->kind, WEB_FRAME);
    assert_ptr_equal(web_find(&files, STR("/console")), web_find(&files, STR("/console/")));
    assert_true(web_is_path(STR("/console")) && !web_is_path(STR("/consoles")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_form_that_is_taken_is_chosen),
        cmocka_unit_test(a_form_of_weight_0_is_not_taken),
        cmocka_unit_test(the_module_is_there_and_compressed_forms_are_smaller),
        cmocka_unit_test(the_demo_page_is_shown_where_it_is_turned_on),
        cmocka_unit_test(the_frame_of_foreign_content_is_there_however_the_gateway_was_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
