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
    "\"name\":\"Acme\",\"status\":\"active\",\"suspended\":false,\"region\":\"eu-west\","          \
    "\"locale\":\"de-DE\",\"time_zone\":\"Europe/Berlin\","                                        \
    "\"sender_address\":\"hello@acme.example\",\"sender_name\":\"Acme\",\"reply_to\":"             \
    "\"help@acme.example\",\"sender_domains\":["                                                   \
    "\"acme.example\",\"*.acme.example\"],\"quiet_hours\":{"                                       \
    "\"start\":\"22:00\",\"end\":\"07:05\"},\"limits\":{\"per_minute\":5,\"per_day\":0,"           \
    "\"channels\":{\"email\":{\"per_minute\":1,\"per_day\":2},"                                    \
    "\"sms\":{\"per_minute\":0,\"per_day\":3}}},"                                                  \
    "\"recipient_limits\":{\"per_minute\":0,\"per_day\":9,\"channels\":{"                          \
    "\"push\":{\"per_minute\":0,\"per_day\":4}}},\"over_limit\":\"suppress\","                     \
    "\"guardian_routing\":\"copy\",\"shared_addresses\":\"refuse\",\"retention\":{\"marketing\":"  \
    "\"brief\",\"social\":\"record\"},"                                                            \
    "\"notification_policy\":{\"channels\":{\"voice\":false},"                                     \
    "\"categories\":{\"marketing\":false,\"social\":false}},"                                      \
    "\"physical_address\":\"1 Main "                                                               \
    "St\\nTown\",\"address_footer\":\"every\",\"events\":\"clear\",\"theme\":{"                    \
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
    Problem problem = read_it("{\"tenant\":\"acme\"," WHOLE, arena, &tenant);
    if (problem.status != 0) {
        fail_msg("%s: %s", problem.field, problem.detail);
    }
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
        &tenant, "{\"tenant\":\"acme\",\"status\":\"active\",\"suspended\":false,"
                 "\"over_limit\":\"defer\",\"theme\":{}}");
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
        {"{\"status\":\"asleep\"}", "status"},
        {"{\"status\":\"active\",\"suspended\":true}", "status"},
        {"{\"region\":\"a\\nb\"}", "region"},
        {"{\"region\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
         "region"},
        {"{\"limits\":{\"channels\":{\"fax\":{\"per_day\":1}}}}", "limits.channels.fax"},
        {"{\"limits\":{\"channels\":{\"sms\":{\"per_day\":-1}}}}", "limits.channels.sms.per_day"},
        {"{\"limits\":{\"channels\":{\"sms\":7}}}", "limits.channels.sms"},
        {"{\"recipient_limits\":{\"channels\":{\"sms\":{\"a\":1}}}}",
         "recipient_limits.channels.sms.a"},
        {"{\"notification_policy\":{\"channels\":{\"fax\":false}}}",
         "notification_policy.channels.fax"},
        {"{\"notification_policy\":{\"categories\":{\"social\":\"no\"}}}",
         "notification_policy.categories.social"},
        {"{\"notification_policy\":{\"hours\":{}}}", "notification_policy.hours"},
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
        (void)json_object_del(merged, "status");
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

static void of_status_and_suspended_the_one_that_is_named_counts(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Tenant tenant;
    static const char *const rows[][3] = {
        {"deleting", "{\"suspended\":false}", "active"},
        {"active", "{\"status\":\"deleting\"}", "deleting"},
        {"deleting", "{\"name\":\"B\"}", "deleting"},
        {"deleting", "{\"suspended\":true}", "suspended"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stentor__v1__tenant__init(&tenant);
        tenant.tenant = arena_cstr(arena, STR("acme"));
        assert_true(tenant_status_set(&tenant, str_from(rows[i][0])));
        json_t *patch = json_loads(rows[i][1], 0, NULL);
        json_t *merged = tenant_json_merge(&tenant, patch);
        char *text = json_dumps(merged, JSON_COMPACT);
        assert_int_equal(read_it(text, arena, &tenant).status, 0);
        assert_string_equal(tenant_status_name(&tenant), rows[i][2]);
        free(text);
        json_decref(merged);
        json_decref(patch);
    }
    tenant.status =
        STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING; // an earlier release lifted it
    tenant.suspended = false;
    assert_string_equal(tenant_status_name(&tenant), "active");
    assert_false(tenant_status_set(&tenant, STR("ACTIVE")));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_patch_changes_what_it_names_and_null_takes_away),
        cmocka_unit_test(of_status_and_suspended_the_one_that_is_named_counts),
        cmocka_unit_test(what_is_printed_can_be_read_back),
        cmocka_unit_test(nothing_said_is_nothing_set),
        cmocka_unit_test(a_wrong_setting_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
