// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/access/oidc/oidc_roles.h"

static Arena *arena;
static OidcRoles roles;

static void parse(const char *text)
{
    Error err;
    assert_true(oidc_roles_parse(str_from(text), &roles, &err));
}

static void expect_wrong(const char *text, const char *part)
{
    Error err = {0};
    assert_false(oidc_roles_parse(str_from(text), &roles, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s': wanted '%s', got '%s'", text, part, err.text);
    }
}

// "role@tenants"; "": none.
static const char *chosen(const char *groups)
{
    Str role, tenants;
    json_t *json = json_loads(groups, JSON_DECODE_ANY, NULL);
    bool found = oidc_roles_choose(&roles, json, arena, &role, &tenants);
    const char *text =
        found ? arena_printf(arena, STR_FMT "@" STR_FMT, STR_ARG(role), STR_ARG(tenants)) : "";
    json_decref(json);
    return text;
}

static void a_row_is_a_group_a_role_and_a_tenant(void **state)
{
    (void)state;
    parse("ops=operator@platform, CN=a@b=x=support@acme");
    assert_int_equal(roles.count, 2);
    assert_true(str_eq(roles.rows[1].group, STR("CN=a@b=x")));
    assert_true(str_eq(roles.rows[1].role, STR("support")));
    assert_true(str_eq(roles.rows[1].tenant, STR("acme")));
    static const char *const lacking[] = {
        "ops", "=viewer@acme", "ops=viewer", "ops@acme", "a=viewer@acme,"};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        expect_wrong(lacking[i], "lacks");
    }
    expect_wrong("ops=king@acme", "no role");
    expect_wrong("ops=@acme", "no role");
    expect_wrong("ops=viewer@ACME", "tenant's name");
    expect_wrong("ops=viewer@", "tenant's name");
    expect_wrong("ops=operator@acme", "only platform has operators");
    expect_wrong("", "no row");
}

static void more_tenants_than_a_session_has_are_refused_at_the_start(void **state)
{
    (void)state;
    const char *text = "";
    for (int i = 0; i < 32; i++) {
        text = arena_printf(arena, "%s%sg=viewer@t%d", text, i > 0 ? "," : "", i);
    }
    parse(text);
    expect_wrong(arena_printf(arena, "%s,g=viewer@t32", text), "more than 32");
    for (int i = 0; i < 300; i++) {
        text = arena_printf(arena, "%s,g=viewer@t1", i == 0 ? "g=support@t" : text);
    }
    expect_wrong(text, "more than");
}

static void the_first_row_that_fits_says_the_role_and_its_others_the_tenants(void **state)
{
    (void)state;
    parse("a=support@acme,b=viewer@shop,c=support@shop,d=support@acme,b=viewer@acme");
    assert_string_equal(chosen("[\"a\"]"), "support@acme");
    assert_string_equal(chosen("[\"b\",\"a\"]"), "support@acme");
    assert_string_equal(chosen("[\"d\",\"c\",\"a\"]"), "support@acme,shop");
    assert_string_equal(chosen("[\"c\"]"), "support@shop");
    assert_string_equal(chosen("\"b\""), "viewer@shop,acme");
}

static void who_is_in_none_of_the_groups_gets_nothing(void **state)
{
    (void)state;
    parse("a=support@acme");
    static const char *const none[] = {"[]",           "[\"A\"]",   "[\"a \"]",       "\"\"", "7",
                                       "{\"a\":true}", "[[\"a\"]]", "[\"a\\u0000\"]", "null"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(chosen(none[i]), "");
    }
    Str role, tenants;
    assert_false(oidc_roles_choose(&roles, NULL, arena, &role, &tenants));
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_a_group_a_role_and_a_tenant),
        cmocka_unit_test(more_tenants_than_a_session_has_are_refused_at_the_start),
        cmocka_unit_test(the_first_row_that_fits_says_the_role_and_its_others_the_tenants),
        cmocka_unit_test(who_is_in_none_of_the_groups_gets_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
