// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/events/sealed.h"
#include "tests/unit/common/events/events_fixture.h"

static Stentor__V1__Sealed a_sealed(Str subject, uint32_t generation)
{
    Stentor__V1__Sealed sealed;
    stentor__v1__sealed__init(&sealed);
    sealed.key_subject = pb_data(subject);
    sealed.key_generation = generation;
    return sealed;
}

static void a_field_without_its_key_is_refused_by_name(void **state)
{
    (void)state;
    const Str whole = STR("0123456789abcdef");
    const Stentor__V1__Sealed good = a_sealed(whole, 1);
    const Stentor__V1__Sealed shorter = a_sealed(STR("0123"), 1);
    const Stentor__V1__Sealed none = a_sealed(whole, 0);
    const struct {
        const Stentor__V1__Sealed *sealed;
        const char *text; // "": it passes
    } cases[] = {
        {&good, ""},
        {NULL, "field 'address' is missing"},
        {&shorter, "field 'address' does not name its key"},
        {&none, "field 'address' does not name its key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error err = {0};
        bool passes = cases[i].text[0] == '\0';
        assert_int_equal(sealed_check(cases[i].sealed, "address", &err), passes);
        assert_int_equal(sealed_names_key(cases[i].sealed), passes);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(err.kind, passes ? ERROR_NONE : ERROR_PERMANENT);
    }
}

static void the_want_is_of_the_subject_that_the_field_names(void **state)
{
    (void)state;
    const Stentor__V1__Sealed sealed = a_sealed(STR("0123456789abcdef"), 3);
    KeyWant want = key_want_of(STR("acme"), &sealed);
    assert_true(str_eq(want.tenant, STR("acme")));
    assert_memory_equal(want.subject, "0123456789abcdef", 16);
    assert_int_equal(want.generation, 3);
    assert_int_equal(want.older_count, 0);
    assert_null(want.key);
}

static void two_fields_are_under_one_key_by_subject_and_generation(void **state)
{
    (void)state;
    const Stentor__V1__Sealed a = a_sealed(STR("0123456789abcdef"), 3);
    const Stentor__V1__Sealed same = a_sealed(STR("0123456789abcdef"), 3);
    const Stentor__V1__Sealed later = a_sealed(STR("0123456789abcdef"), 4);
    const Stentor__V1__Sealed other = a_sealed(STR("1123456789abcdef"), 3);
    assert_true(sealed_same_key(&a, &same));
    assert_false(sealed_same_key(&a, &later));
    assert_false(sealed_same_key(&a, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_without_its_key_is_refused_by_name),
        cmocka_unit_test(the_want_is_of_the_subject_that_the_field_names),
        cmocka_unit_test(two_fields_are_under_one_key_by_subject_and_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
