// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/api/tenant_json.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "services/gateway/tenants/tenant_event.h"

#define STORED_AT "2026-05-01T12:00:00Z"

typedef struct Scene {
    Arena *arena;
    TenantMembers members;
    const Stentor__V1__Tenant *tenant; // as it is now; NULL: none
    Error err;
} Scene;

static int set_up(void **state)
{
    static Scene scene;
    scene = (Scene){.arena = arena_new(0)};
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    arena_free(((Scene *)*state)->arena);
    return 0;
}

// data: members of the event; at: its time.
static bool read_it(Scene *s, const char *type, const char *at, const char *data, TenantFacts *ret)
{
    DomainEvent event;
    DomainInput input = {
        .tenant = STR("platform"),
        .type = str_from(type),
        .stream = "EVENTS",
        .payload = str_from(arena_printf(
            s->arena,
            "{\"specversion\":\"1.0\",\"id\":\"e\",\"type\":\"t\",\"time\":\"%s\",\"data\":%s}", at,
            data)),
    };
    assert_true(clock_parse(STR(STORED_AT), &input.stored_at_us));
    assert_true(domain_event_read(&input, s->arena, &event, &s->err));
    bool ok = tenant_event_read(&event, &s->members, s->arena, ret, &s->err);
    domain_event_free(&event);
    return ok;
}

static bool happens(Scene *s, const char *type, const char *at, const char *data)
{
    TenantFacts facts;
    Stentor__V1__Tenant *made = arena_zalloc(s->arena, sizeof *made);
    if (!read_it(s, type, at, data, &facts)) {
        return false;
    }
    bool ok = tenant_event_apply(&facts, s->tenant, s->arena, made, &s->err);
    tenant_facts_free(&facts);
    s->tenant = ok ? made : s->tenant;
    return ok;
}

static void say(Scene *s, const char *type, const char *at, const char *data)
{
    if (!happens(s, type, at, data)) {
        fail_msg("%s: %s", data, s->err.text);
    }
}

static void assert_is(const Scene *s, const char *name, const char *region, const char *status)
{
    assert_string_equal(s->tenant->name, name);
    assert_string_equal(s->tenant->region, region);
    assert_string_equal(tenant_status_name(s->tenant), status);
}

static void the_documents_columns_are_read(void **state)
{
    Scene *s = *state;
    say(s, "tenant.created.v1", STORED_AT,
        "{\"tenant_id\":\"inn\",\"name\":\"Inn\",\"region\":\"eu\",\"status\":\"active\","
        "\"default_locale\":\"de-DE\",\"default_timezone\":\"Europe/Berlin\","
        "\"notification_policy\":{},\"theme_etag\":\"W/1\",\"updated_at\":\"" STORED_AT "\"}");
    assert_is(s, "Inn", "eu", "active");
    assert_string_equal(s->tenant->tenant, "inn");
    assert_string_equal(s->tenant->default_locale, "de-DE");
    assert_string_equal(s->tenant->time_zone, "Europe/Berlin");
    assert_null(s->tenant->notification_policy);
}

static void members_are_found_in_any_spelling_and_inside_of_a_tenant(void **state)
{
    Scene *s = *state;
    say(s, "TenantCreated", STORED_AT, "{\"TenantId\":\"inn\",\"DisplayName\":\"Inn\"}");
    assert_is(s, "Inn", "", "active");
    say(s, "TenantUpdated", STORED_AT,
        "{\"tenant\":{\"id\":\"inn\",\"name\":\"Hotel\",\"region\":\"us\",\"status\":\"Suspended\"}"
        "}");
    assert_is(s, "Hotel", "us", "suspended");
}

static void an_option_names_other_members(void **state)
{
    Scene *s = *state;
    assert_true(tenant_members_parse(
        STR("tenant=org.slug, name = org.title,status="), &s->members, &s->err));
    say(s, "TenantCreated", STORED_AT,
        "{\"tenant_id\":\"wrong\",\"status\":\"asleep\",\"region\":\"eu\","
        "\"org\":{\"slug\":\"inn\",\"title\":\"Inn\"}}");
    assert_is(s, "Inn", "eu", "active");
    assert_string_equal(s->tenant->tenant, "inn");
    static const char *const wrong[] = {"id=a", "tenant=", "name", "name=a..b", "=a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(tenant_members_parse(str_from(wrong[i]), &s->members, &s->err));
        assert_int_equal(s->err.kind, ERROR_CONFIG);
    }
    assert_true(tenant_members_parse(STR(""), &s->members, &s->err));
}

static void a_later_time_counts_field_by_field_in_any_order(void **state)
{
    Scene *s = *state;
    static const char *const events[][3] = {
        {"TenantCreated", "2026-05-01T10:00:00Z",
         "{\"id\":\"inn\",\"name\":\"A\",\"region\":\"eu\",\"status\":\"active\"}"},
        {"TenantUpdated", "2026-05-01T10:01:00Z", "{\"id\":\"inn\",\"name\":\"B\"}"},
        {"TenantSuspended", "2026-05-01T10:02:00Z", "{\"id\":\"inn\"}"},
    };
    static const int orders[][4] = {{0, 1, 2, 2}, {2, 1, 0, 1}, {1, 2, 0, 0}, {2, 0, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        s->tenant = NULL;
        for (int n = 0; n < 4; n++) {
            const char *const *event = events[orders[i][n]];
            say(s, event[0], event[1], event[2]);
        }
        assert_is(s, "B", "eu", "suspended");
    }
    say(s, "TenantReactivated", "2026-05-01T10:03:00Z", "{\"id\":\"inn\"}");
    say(s, "TenantDeleted", "2026-05-01T10:02:30Z", "{\"id\":\"inn\"}");
    assert_is(s, "B", "eu", "active");
    say(s, "TenantDeleted", "2026-05-01T10:04:00Z", "{\"id\":\"inn\"}");
    assert_is(s, "B", "eu", "deleting");
}

static void a_clock_that_is_ahead_counts_as_the_streams(void **state)
{
    Scene *s = *state;
    say(s, "TenantSuspended", "2099-01-01T00:00:00Z", "{\"id\":\"inn\"}");
    say(s, "TenantReactivated", STORED_AT, "{\"id\":\"inn\"}");
    assert_is(s, "", "", "active");
}

static void what_an_operator_set_stays_unless_a_later_event_names_it(void **state)
{
    Scene *s = *state;
    Stentor__V1__Tenant hand;
    int64_t at_us = 0;
    stentor__v1__tenant__init(&hand);
    hand.tenant = arena_cstr(s->arena, STR("inn"));
    hand.name = arena_cstr(s->arena, STR("By hand"));
    hand.sender_address = arena_cstr(s->arena, STR("a@inn.test"));
    assert_true(clock_parse(STR("2026-05-01T11:00:00Z"), &at_us));
    tenant_fields_stamp(NULL, at_us, s->arena, &hand);
    s->tenant = &hand;
    say(s, "TenantUpdated", "2026-05-01T10:00:00Z",
        "{\"id\":\"inn\",\"name\":\"Older\",\"region\":\"eu\"}");
    assert_is(s, "By hand", "eu", "active"); // it had not said the region
    say(s, "TenantUpdated", "2026-05-01T11:30:00Z", "{\"id\":\"inn\",\"status\":\"active\"}");
    assert_is(s, "By hand", "eu", "active");
    say(s, "TenantUpdated", "2026-05-01T11:31:00Z", "{\"id\":\"inn\",\"name\":\"Newer\"}");
    assert_is(s, "Newer", "eu", "active");
    assert_string_equal(s->tenant->sender_address, "a@inn.test");
}

static void a_change_by_hand_gives_its_time_to_what_differs(void **state)
{
    Scene *s = *state;
    say(s, "TenantCreated", "2026-05-01T10:00:00Z", "{\"id\":\"inn\",\"name\":\"A\"}");
    Stentor__V1__Tenant wanted = *s->tenant;
    int64_t name_us = s->tenant->field_times->name_us;
    tenant_fields_stamp(s->tenant, name_us + 5, s->arena, &wanted);
    Str before = STR_EMPTY;
    Str after = STR_EMPTY;
    assert_true(event_pack(&s->tenant->base, s->arena, &before, NULL));
    assert_true(event_pack(&wanted.base, s->arena, &after, NULL));
    assert_true(str_eq(before, after)); // nothing differs, nothing changes
    wanted.region = arena_cstr(s->arena, STR("eu"));
    wanted.over_limit = STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    tenant_fields_stamp(s->tenant, name_us + 5, s->arena, &wanted);
    assert_int_equal(wanted.field_times->name_us, name_us);
    assert_int_equal(wanted.field_times->region_us, name_us + 5);
    assert_int_equal(wanted.field_times->policy_us, name_us + 5);
    assert_int_equal(wanted.field_times->status_us, 0);
}

static void the_policy_is_what_stentor_has_settings_for(void **state)
{
    Scene *s = *state;
    TenantFacts facts;
    say(s, "TenantUpdated", "2026-05-01T10:00:00Z",
        "{\"id\":\"inn\",\"notificationPolicy\":{\"channels\":{\"sms\":false,\"email\":true},"
        "\"quietHours\":{\"start\":\"22:00\",\"end\":\"06:00\"},"
        "\"limits\":{\"per_day\":9},\"overLimit\":\"suppress\"}}");
    assert_int_equal(s->tenant->notification_policy->n_channels_off, 1);
    assert_int_equal(s->tenant->quiet_hours->start_minute, 22 * 60);
    assert_int_equal(s->tenant->tenant_limits->per_day, 9);
    say(s, "TenantUpdated", "2026-05-01T10:01:00Z",
        "{\"id\":\"inn\",\"notification_policy\":{\"channels\":{},\"categories\":{\"social\":false}"
        "}}");
    assert_int_equal(s->tenant->notification_policy->n_channels_off, 0); // it says all of it
    assert_int_equal(s->tenant->notification_policy->n_categories_off, 1);
    assert_int_equal(s->tenant->tenant_limits->per_day, 9);
    assert_true(read_it(
        s, "TenantUpdated", STORED_AT,
        "{\"id\":\"inn\",\"notification_policy\":{\"tone\":1,\"channels\":{},\"mood\":2}}",
        &facts));
    assert_string_equal(facts.passed, "tone, mood");
    tenant_facts_free(&facts);
}

static void a_repeat_makes_the_same_bytes(void **state)
{
    Scene *s = *state;
    Str packed[2];
    for (int i = 0; i < 2; i++) {
        say(s, "TenantCreated", STORED_AT,
            "{\"id\":\"inn\",\"name\":\"A\",\"notification_policy\":{\"channels\":{\"sms\":false},"
            "\"limits\":{\"per_day\":1,\"channels\":{\"sms\":{\"per_day\":1}}}}}");
        assert_true(event_pack(&s->tenant->base, s->arena, &packed[i], NULL));
    }
    assert_true(str_eq(packed[0], packed[1]));
}

static void what_cannot_be_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"{\"name\":\"A\"}", "'tenant_id'"},
        {"{\"id\":7}", "'tenant_id'"},
        {"{\"id\":\"Not An Id\"}", "'Not An Id' is not a tenant id"},
        {"{\"id\":\"platform\"}", "'platform'"},
        {"{\"id\":\"inn\",\"name\":7}", "field 'name'"},
        {"{\"id\":\"inn\",\"status\":\"asleep\"}", "field 'status': expected active"},
        {"{\"id\":\"inn\",\"status\":true}", "field 'status'"},
        {"{\"id\":\"inn\",\"default_timezone\":\"Mars/Base\"}", "field 'time_zone'"},
        {"{\"id\":\"inn\",\"default_locale\":\"x_y\"}", "field 'locale'"},
        {"{\"id\":\"inn\",\"notification_policy\":[]}", "'notification_policy' must be an object"},
        {"{\"id\":\"inn\",\"notification_policy\":{\"channels\":{\"fax\":false}}}", "channels.fax"},
        {"{\"id\":\"inn\",\"notification_policy\":{\"limits\":{\"per_hour\":1}}}",
         "limits.per_hour"},
    };
    Scene *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        s->err = (Error){0};
        if (happens(s, "TenantCreated", STORED_AT, cases[i][0]) || s->err.kind != ERROR_PERMANENT ||
            strstr(s->err.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], s->err.text);
        }
        assert_null(s->tenant);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_documents_columns_are_read),
        TEST(members_are_found_in_any_spelling_and_inside_of_a_tenant),
        TEST(an_option_names_other_members),
        TEST(a_later_time_counts_field_by_field_in_any_order),
        TEST(a_clock_that_is_ahead_counts_as_the_streams),
        TEST(what_an_operator_set_stays_unless_a_later_event_names_it),
        TEST(a_change_by_hand_gives_its_time_to_what_differs),
        TEST(the_policy_is_what_stentor_has_settings_for),
        TEST(a_repeat_makes_the_same_bytes),
        TEST(what_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
