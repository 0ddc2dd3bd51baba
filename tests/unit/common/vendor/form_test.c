// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"

#include "tests/unit/common/vendor/vendor_case.h"

static void a_form_is_written_and_read_back(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Buf form;
    buf_init(&form, FORM_BYTES_MAX);
    form_put(&form, "To", STR("+4915112345678"));
    form_put(&form, "Body", STR("a & b = 100 % \xf0\x9f\x98\x80\n"));
    form_put(&form, "Empty", STR_EMPTY);
    VendorRequest request = {0};
    form_set(&request, &form, arena);
    buf_done(&form);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "To=%2B4915112345678&Body=a%20%26%20b%20%3D%20100%20%25%20%F0%9F%98%80%0A&Empty=");
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    assert_true(form_read(request.body, arena, fields, &count));
    assert_int_equal(count, 3);
    assert_true(str_eq(form_value(fields, count, "To"), STR("+4915112345678")));
    assert_true(str_eq(form_value(fields, count, "Body"), STR("a & b = 100 % \xf0\x9f\x98\x80\n")));
    assert_int_equal(form_value(fields, count, "Empty").len, 0);
    assert_int_equal(form_value(fields, count, "None").len, 0);
    arena_free(arena);
}

static bool reads(const char *body, size_t *ret_count)
{
    Arena *arena = arena_new(0);
    VendorPair fields[FORM_FIELDS_MAX];
    bool good = form_read(str_from(body), arena, fields, ret_count);
    arena_free(arena);
    return good;
}

static void what_is_no_form_is_refused(void **state)
{
    (void)state;
    size_t count = 0;
    assert_true(reads("", &count) && count == 0);
    assert_true(reads("a=b+c", &count) && count == 1);
    assert_true(reads("a=%4a", &count) && count == 1);
    static const char *const wrong[] = {"a", "a=1&b", "a=%", "a=%4", "a=%4x", "a=%x4", "%=1", "&"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (reads(wrong[i], &count)) {
            fail_msg("'%s' was read", wrong[i]);
        }
    }
    char many[4 * (FORM_FIELDS_MAX + 1) + 1] = "";
    for (size_t i = 0; i <= FORM_FIELDS_MAX; i++) {
        memcpy(many + 4 * i, "a=1&", 5);
    }
    assert_false(reads(many, &count));
    many[4 * FORM_FIELDS_MAX - 1] = '\0';
    assert_true(reads(many, &count) && count == FORM_FIELDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_is_written_and_read_back),
        cmocka_unit_test(what_is_no_form_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
