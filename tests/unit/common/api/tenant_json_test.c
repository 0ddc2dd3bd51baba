// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/api/tenant_json.h"

#define WHOLE                                                                                      \
    "\"name\":\"Acme\",\"suspended\":false,\"locale\":\"de-DE\",\"time_zone\":\"Europe/Berlin\","  \
    "\"sender_address\":\"hello@acme.example\",\"sender_name\":\"Acme\",\"reply_to\":"             \
    "\"help@acme.example\",\"sender_domains\":["                                                   \
    "\"acme.example\",\"*.acme.example\"],\"quiet_hours\":{"                                       \
    "\"start\":\"22:00\",\"end\":\"07:05\"},\"limits\":{\"per_minute\":5,\"per_day\":0},"          \
    "\"recipient_limits\":{\"per_minute\":0,\"per_day\":9},\"over_limit\":\"suppress\","           \
    "\"guardian_routing\":\"copy\",\"shared_addresses\":\"refuse\",\"retention\":{\"marketing\":"  \
    "\"brief\",\"social\":\"record\"},"                                                            \
    "\"physical_address\":\"1 Main St\\nTown\",\"address_footer\":\"every\",\"theme\":{"           \
    "\"logo_url\":\"https://acme.example/l.png\"}}"

static Problem read_it(const char *json, Arena *arena, Stentor__V1__Tenant *ret)
{
    ApiBody body;
    unsigned named = 0;
    stentor__v1__tenant__init(ret);
    ret->tenant = arena_cstr(arena, STR("acme"));
    assert_true(api_body_parse(&body, str_from(json), arena));
    (void)(tenant_json_read(&body, ret, &named) && api_body_end(&body));
    Problem problem = body.problem;
    api_body_free(&body);
    return problem;
}

static void assert_prints(const Stentor__V1__Tenant *tenant, const char *wanted)
{
    Buf out;
    buf_init(&out, 8192);
    tenant_json_print(tenant, &out);
    assert_string_equal(buf_c(&out), wanted);
    buf_done(&out);
}

static void what_is_printed_can_be_read_back(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Tenant tenant;
    assert_int_equal(read_it("{\"tenant\":\"acme\"," WHOLE, arena, &tenant).status, 0);
    assert_prints(&tenant, "{\"tenant\":\"acme\"," WHOLE);
    arena_free(arena);
}

static void nothing_said_is_nothing_set(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Tenant tenant;
    assert_int_equal(read_it("{}", arena, &tenant).status, 0);
    assert_null(tenant.quiet_hours);
    assert_null(tenant.tenant_limits);
    assert_prints(
        &tenant, "{\"tenant\":\"acme\",\"suspended\":false,\"over_limit\":\"defer\",\"theme\":{}}");
    arena_free(arena);
}

static void a_wrong_setting_is_named(void **state)
{
    static const char *const CASES[][2] = {
        {"{\"suspended\":7}", "suspended"},
        {"{\"tenant\":\"beta\"}", "tenant"},
        {"{\"sender_domains\":[\"a.test\",\"a@b.test\"]}", "sender_domains[1]"},
        {"{\"sender_domains\":[7]}", "sender_domains[0]"},
        {"{\"name\":\"a\\nb\"}", "name"},
        {"{\"sender_address\":\"a b@c.example\"}", "sender_address"},
        {"{\"reply_to\":\"help\"}", "reply_to"},
        {"{\"reply_to\":\"a@b.example\\r\\nBcc: x\"}", "reply_to"},
        {"{\"sender_name\":\"a\\r\\nBcc: x\"}", "sender_name"},
        {"{\"time_zone\":\"Mars/Base\"}", "time_zone"},
        {"{\"locale\":\"x_y\"}", "locale"},
        {"{\"quiet_hours\":{\"start\":\"22\",\"end\":\"07:00\"}}", "quiet_hours.start"},
        {"{\"limits\":{\"per_minute\":-1}}", "limits.per_minute"},
        {"{\"limits\":{\"per_hour\":1}}", "limits.per_hour"},
        {"{\"recipient_limits\":7}", "recipient_limits"},
        {"{\"over_limit\":\"drop\"}", "over_limit"},
        {"{\"guardian_routing\":\"maybe\"}", "guardian_routing"},
        {"{\"address_footer\":\"never\"}", "address_footer"},
        {"{\"shared_addresses\":\"never\"}", "shared_addresses"},
        {"{\"shared_addresses\":7}", "shared_addresses"},
        {"{\"theme\":{\"Logo\":\"x\"}}", "theme.Logo"},
        {"{\"theme\":{\"a-b\":\"x\"}}", "theme.a-b"},
        {"{\"theme\":{\"logo\":7}}", "theme.logo"},
        {"{\"retention\":{\"newsletters\":\"brief\"}}", "retention.newsletters"},
        {"{\"retention\":{\"marketing\":\"forever\"}}", "retention.marketing"},
        {"{\"retention\":{\"marketing\":24}}", "retention.marketing"},
        {"{\"unknown\":1}", "unknown"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        Stentor__V1__Tenant tenant;
        Problem problem = read_it(CASES[i][0], arena, &tenant);
        assert_int_equal(problem.status, 422);
        assert_string_equal(problem.field, CASES[i][1]);
        arena_free(arena);
    }
}

static void a_merge_patch_changes_what_it_names_and_null_takes_away(void **state)
{
    (void)state;
    Stentor__V1__Tenant tenant;
    Stentor__V1__Limits limits = STENTOR__V1__LIMITS__INIT;
    char acme[] = "acme";
    char name[] = "Acme";
    stentor__v1__tenant__init(&tenant);
    limits.per_minute = 5;
    limits.per_day = 7;
    tenant.tenant = acme;
    tenant.name = name;
    tenant.tenant_limits = &limits;
    static const char *const rows[][2] = {
        {"{}", "{\"limits\":{\"per_day\":7,\"per_minute\":5},\"name\":\"Acme\",\"theme\":{}}"},
        {"{\"name\":null,\"limits\":{\"per_day\":1}}",
         "{\"limits\":{\"per_day\":1,\"per_minute\":5},\"theme\":{}}"},
        {"{\"limits\":null,\"theme\":{\"a\":\"b\",\"c\":null}}",
         "{\"name\":\"Acme\",\"theme\":{\"a\":\"b\"}}"},
        {"{\"limits\":3}", "{\"limits\":3,\"name\":\"Acme\",\"theme\":{}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *patch = json_loads(rows[i][0], 0, NULL);
        json_t *merged = tenant_json_merge(&tenant, patch);
        (void)json_object_del(merged, "tenant");
        (void)json_object_del(merged, "suspended");
        (void)json_object_del(merged, "over_limit");
        (void)json_object_del(merged, "guardian_routing");
        char *text = json_dumps(merged, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, rows[i][1]);
        free(text);
        json_decref(merged);
        merged = tenant_json_merge(NULL, patch);
        assert_null(json_object_get(merged, "name"));
        json_decref(merged);
        json_decref(patch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_patch_changes_what_it_names_and_null_takes_away),
        cmocka_unit_test(what_is_printed_can_be_read_back),
        cmocka_unit_test(nothing_said_is_nothing_set),
        cmocka_unit_test(a_wrong_setting_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
