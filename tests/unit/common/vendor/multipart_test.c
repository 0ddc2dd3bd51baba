// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/multipart.h"
#include "tests/unit/common/vendor/vendor_case.h"

static Str boundary_of(const VendorRequest *request)
{
    Str type = request->headers[0].value;
    Str begin = STR("multipart/form-data; boundary=");
    assert_true(str_starts(type, begin));
    return str_slice(type, begin.len, type.len);
}

static size_t times(Str text, Str part)
{
    size_t count = 0;
    for (size_t i = 0; i + part.len <= text.len; i++) {
        count += memcmp(text.ptr + i, part.ptr, part.len) == 0;
    }
    return count;
}

static void a_value_that_looks_like_a_boundary_ends_no_part(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    MultipartField field = {STR("message"), STR("a"), STR("message.mime"), STR("message/rfc822")};
    VendorRequest first = {0};
    multipart_set(&first, &field, 1, arena);
    // A form that holds the whole of another one, boundary and all, and bytes that are no text.
    MultipartField nested[] = {
        {STR("message"), first.body, STR("message.mime"), STR("message/rfc822")},
        {STR("v:x"), STR("\r\n--stentor-\0\xff--\r\n"), STR_EMPTY, STR_EMPTY}};
    VendorRequest second = {0};
    multipart_set(&second, nested, 2, arena);
    Str boundary = boundary_of(&second);
    assert_false(str_eq(boundary, boundary_of(&first)));
    assert_int_equal(boundary.len, 40);
    assert_int_equal(times(second.body, boundary), 3);
    assert_int_equal(times(second.body, first.body), 1);
    arena_free(arena);
}

static void the_same_form_has_the_same_bytes(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    MultipartField field = {STR("to"), STR("a@example.org"), STR_EMPTY, STR_EMPTY};
    VendorRequest one = {0}, other = {0};
    multipart_set(&one, &field, 1, arena);
    multipart_set(&other, &field, 1, arena);
    assert_true(str_eq(one.body, other.body));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_looks_like_a_boundary_ends_no_part),
        cmocka_unit_test(the_same_form_has_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
