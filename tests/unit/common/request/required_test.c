// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/request/required.h"

// The paths of `required` that are missing, each with a blank behind it.
static const char *missing(
    Arena *arena, const char *required, const char *variables, const char *defaults)
{
    json_t *own = variables == NULL ? NULL : json_loads(variables, 0, NULL);
    json_t *others = defaults == NULL ? NULL : json_loads(defaults, 0, NULL);
    const char *all = "";
    const char *at = required;
    for (const char *path; (path = required_missing(&at, own, others)) != NULL;) {
        all = arena_printf(arena, "%s%s ", all, path);
    }
    json_decref(own);
    json_decref(others);
    return all;
}

static void what_is_missing_or_null_is_named(void **state)
{
    (void)state;
    static const char required[] = "name\0order.id\0items.0\0";
    Arena *arena = arena_new(0);
    const char *good = "{\"name\":\"\",\"order\":{\"id\":0},\"items\":[false]}";
    assert_string_equal(missing(arena, required, good, NULL), "");
    assert_string_equal(missing(arena, required, NULL, NULL), "name order.id items.0 ");
    assert_string_equal(
        missing(arena, required, "{\"name\":null}", NULL), "name order.id items.0 ");
    assert_string_equal(
        missing(arena, required, "{\"order\":7,\"items\":[]}", NULL), "name order.id items.0 ");
    assert_string_equal(missing(arena, required, NULL, good), "");
    assert_string_equal(missing(arena, required, "{\"order\":{}}", good), "order.id ");
    assert_string_equal(missing(arena, NULL, "{}", NULL), "");
    arena_free(arena);
}

static void only_what_is_required_of_the_caller_is_packed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool required;
    } rows[] = {{"name", true}, {"note", false}, {"physical_address", true}, {"order.id", true}};
    Arena *arena = arena_new(0);
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    char *none = required_pack(&version);
    assert_null(none);
    assert_null(required_copy(none, arena));
    Stentor__V1__TemplateVariable variables[4];
    Stentor__V1__TemplateVariable *list[4];
    for (size_t i = 0; i < 4; i++) {
        stentor__v1__template_variable__init(&variables[i]);
        variables[i].name = arena_cstr(arena, str_from(rows[i].name));
        variables[i].required = rows[i].required;
        list[i] = &variables[i];
    }
    version.variables = list;
    version.n_variables = 4;
    char *required = required_pack(&version);
    const char *copy = required_copy(required, arena);
    free(required);
    assert_string_equal(missing(arena, copy, NULL, NULL), "name order.id ");
    arena_free(arena);
}

static void a_fault_names_the_variable_and_the_template(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    FieldError err;
    Request request = {.template_key = STR("bill"), .template_version = STR("1.2.0")};
    assert_false(required_error(&err, "order.id", &request, arena));
    assert_string_equal(err.field, "variables.order.id");
    assert_string_equal(err.text, "required by template 'bill' version '1.2.0'");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_or_null_is_named),
        cmocka_unit_test(only_what_is_required_of_the_caller_is_packed),
        cmocka_unit_test(a_fault_names_the_variable_and_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
