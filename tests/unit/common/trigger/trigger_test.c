// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/trigger/trigger.h"

#define GOOD                                                                                       \
    "\"event_type\":\"stay.confirmed\",\"template\":\"welcome\",\"resolver\":\"address:a.b\""

typedef Stentor__V1__Trigger Trigger;

static bool read_json(const char *json, Arena *arena, Trigger *ret, Problem *problem)
{
    return trigger_from_json(str_from(json), STR("acme"), STR("remind"), arena, ret, problem);
}

static void a_full_object_comes_back_as_it_was_put(void **state)
{
    (void)state;
    static const char *const FULL =
        "{\"key\":\"remind\"," GOOD ",\"channel\":\"email\",\"category\":\"reminder\","
        "\"priority\":\"high\",\"name_path\":\"a.name\",\"locale_path\":\"a.locale\","
        "\"offset_s\":-3600,\"anchor\":\"stay.start\",\"subject_path\":\"stay.id\","
        "\"obsoleted_by\":[\"stay.cancelled\",\"stay.moved\"],\"identity\":\"trigger\","
        "\"reschedule\":false,\"enabled\":false}";
    Arena *arena = arena_new(0);
    Trigger trigger;
    Problem problem = {0};
    json_t *want = json_loads(FULL, 0, NULL);
    json_t *without_key = json_deep_copy(want);
    (void)json_object_del(without_key, "key");
    char text[1024];
    size_t size = json_dumpb(without_key, text, sizeof text, 0);
    assert_true(trigger_from_json(
        str_of(text, size), STR("acme"), STR("remind"), arena, &trigger, &problem));
    json_t *back = trigger_to_json(&trigger);
    assert_true(json_equal(back, want));
    assert_string_equal(trigger.tenant, "acme");
    json_decref(back);
    json_decref(want);
    json_decref(without_key);
    arena_free(arena);
}

static Trigger trigger_of(const char *key, const char *json, Arena *arena)
{
    Trigger trigger;
    Problem problem = {0};
    if (!trigger_from_json(str_from(json), STR("acme"), str_from(key), arena, &trigger, &problem)) {
        fail_msg("%s: %s", problem.field, problem.detail);
    }
    return trigger;
}

// Of a trigger that has a subject and waits for a time.
static void a_newer_event_supersedes_where_there_is_something_to_supersede(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool wants;
    } CASES[] = {
        {"{" GOOD ",\"anchor\":\"stay.start\",\"subject_path\":\"stay.id\"}", true},
        {"{" GOOD ",\"offset_s\":60,\"subject_path\":\"stay.id\"}", true},
        {"{" GOOD ",\"anchor\":\"stay.start\"}", false},
        {"{" GOOD ",\"subject_path\":\"stay.id\"}", false},
        {"{" GOOD ",\"offset_s\":-60,\"subject_path\":\"stay.id\"}", false},
        {"{" GOOD ",\"anchor\":\"stay.start\",\"subject_path\":\"stay.id\",\"reschedule\":false}",
         false},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Trigger trigger = trigger_of("remind", CASES[i].json, arena);
        assert_int_equal(trigger_reschedules(&trigger), CASES[i].wants);
    }
    arena_free(arena);
}

static void two_that_would_make_one_notification_collide(void **state)
{
    (void)state;
    static const char *const ALONE[] = {
        "{" GOOD ",\"identity\":\"trigger\"}",
        "{" GOOD ",\"enabled\":false}",
        "{" GOOD ",\"channel\":\"sms\"}",
        "{\"event_type\":\"stay.moved\",\"template\":\"welcome\",\"resolver\":\"address:a.b\"}",
        "{\"event_type\":\"stay.confirmed\",\"template\":\"bye\",\"resolver\":\"address:a.b\"}",
        "{\"event_type\":\"stay.confirmed\",\"template\":\"welcome\",\"resolver\":\"address:c\"}",
    };
    Arena *arena = arena_new(0);
    Trigger first = trigger_of("dun1", "{" GOOD ",\"channel\":\"email\"}", arena);
    Trigger second = trigger_of("dun2", "{" GOOD ",\"offset_s\":60}", arena);
    assert_true(trigger_collides(&first, &second));
    assert_true(trigger_collides(&second, &first));
    assert_false(trigger_collides(&first, &first)); // put again
    for (size_t i = 0; i < sizeof ALONE / sizeof ALONE[0]; i++) {
        Trigger other = trigger_of("dun2", ALONE[i], arena);
        assert_false(trigger_collides(&first, &other));
        assert_false(trigger_collides(&other, &first));
    }
    first.event_type = arena_cstr(arena, STR("PlaceOrder"));
    second.event_type = arena_cstr(arena, STR("PlaceOrderCommand")); // the same event
    assert_true(trigger_collides(&first, &second));
    arena_free(arena);
}

static void what_is_left_out_has_its_default(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Trigger trigger;
    Problem problem = {0};
    assert_true(read_json("{" GOOD "}", arena, &trigger, &problem));
    assert_false(trigger.disabled);
    assert_true(trigger_anchor_is_event(&trigger));
    json_t *made = trigger_to_json(&trigger);
    assert_string_equal(json_string_value(json_object_get(made, "channel")), "email");
    assert_string_equal(json_string_value(json_object_get(made, "priority")), "normal");
    assert_string_equal(json_string_value(json_object_get(made, "anchor")), "event_produced_at");
    assert_null(json_object_get(made, "category"));
    json_decref(made);
    arena_free(arena);
}

typedef struct BadCase {
    const char *json;
    int status;
    const char *field;
} BadCase;

static void each_bad_object_gets_its_field_named(void **state)
{
    (void)state;
    static const BadCase CASES[] = {
        {"{", 400, ""},
        {"[]", 400, ""},
        {"{}", 422, "event_type"},
        {"{\"event_type\":\"x\"}", 422, "template"},
        {"{\"event_type\":\"x\",\"template\":\"t\"}", 422, "resolver"},
        {"{\"event_type\":\"a.*\",\"template\":\"t\",\"resolver\":\"address:a\"}", 422,
         "event_type"},
        {"{" GOOD ",\"channel\":\"carrier\"}", 422, "channel"},
        {"{" GOOD ",\"category\":\"x\"}", 422, "category"},
        {"{" GOOD ",\"priority\":7}", 422, "priority"},
        {"{" GOOD ",\"offset_s\":1.5}", 422, "offset_s"},
        {"{" GOOD ",\"offset_s\":-31622401}", 422, "offset_s"},
        {"{" GOOD ",\"name_path\":\"a..b\"}", 422, "name_path"},
        {"{" GOOD ",\"locale_path\":\".\"}", 422, "locale_path"},
        {"{" GOOD ",\"anchor\":\"a.\"}", 422, "anchor"},
        {"{" GOOD ",\"subject_path\":\"a.\"}", 422, "subject_path"},
        {"{" GOOD ",\"obsoleted_by\":[\"x\"]}", 422, "subject_path"},
        {"{" GOOD ",\"obsoleted_by\":[\"\"],\"subject_path\":\"a\"}", 422, "obsoleted_by"},
        {"{" GOOD ",\"obsoleted_by\":\"x\"}", 422, "obsoleted_by"},
        {"{" GOOD ",\"enabled\":\"yes\"}", 422, "enabled"},
        {"{" GOOD ",\"tenant\":\"other\"}", 422, "tenant"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Trigger trigger;
        Problem problem = {0};
        assert_false(read_json(CASES[i].json, arena, &trigger, &problem));
        assert_int_equal(problem.status, CASES[i].status);
        assert_string_equal(problem.field, CASES[i].field);
        assert_true(problem.detail[0] != '\0');
    }
    arena_free(arena);
}

typedef struct ResolverCase {
    const char *text;
    bool good;
    ResolverKind kind;
    Identity identity;
    const char *path;
} ResolverCase;

static void resolvers(void **state)
{
    (void)state;
    static const ResolverCase CASES[] = {
        {"address:guest.email", true, RESOLVER_ADDRESS, IDENTITY_NONE, "guest.email"},
        {"recipient:who", true, RESOLVER_RECIPIENT, IDENTITY_NONE, "who"},
        {"recipients:who.all", true, RESOLVER_RECIPIENTS, IDENTITY_NONE, "who.all"},
        {"identity:guest:guest.id", true, RESOLVER_IDENTITY, IDENTITY_GUEST, "guest.id"},
        {"identity:user:sub", true, RESOLVER_IDENTITY, IDENTITY_USER, "sub"},
        {"identity:vendor:v", true, RESOLVER_IDENTITY, IDENTITY_VENDOR, "v"},
        {"identity:anonymous:v", false, 0, 0, NULL},
        {"identity:guest", false, 0, 0, NULL},
        {"identity::x", false, 0, 0, NULL},
        {"label:admin", true, RESOLVER_LABEL, IDENTITY_NONE, "admin"},
        {"tenant_admins", true, RESOLVER_NAMED, IDENTITY_NONE, "tenant_admins"},
        {"label:", false, 0, 0, NULL},
        {"label:Admin", false, 0, 0, NULL},
        {"night-desk", false, 0, 0, NULL},
        {"1st", false, 0, 0, NULL},
        {"guest.email", false, 0, 0, NULL},
        {"address:", false, 0, 0, NULL},
        {"Address:x", false, 0, 0, NULL},
        {"", false, 0, 0, NULL},
        {"address:a..b", false, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Resolver resolver = {0};
        FieldError why = {.field = ""};
        bool ok = resolver_parse(str_from(CASES[i].text), &resolver, &why);
        assert_int_equal(ok, CASES[i].good);
        if (ok) {
            assert_int_equal(resolver.kind, CASES[i].kind);
            assert_int_equal(resolver.identity, CASES[i].identity);
            assert_true(str_eq(resolver.path, str_from(CASES[i].path)));
        } else {
            assert_string_equal(why.field, "resolver");
        }
    }
}

static void event_types(void **state)
{
    (void)state;
    static const char *const GOOD_TYPES[] = {"PlaceOrder", "stay.confirmed", "a-b_c.1"};
    static const char *const BAD_TYPES[] = {"",     "notify", ".",   "a.", ".a",
                                            "a..b", "a b",    "a.*", "ü"};
    for (size_t i = 0; i < sizeof GOOD_TYPES / sizeof GOOD_TYPES[0]; i++) {
        assert_true(trigger_is_event_type(str_from(GOOD_TYPES[i])));
    }
    for (size_t i = 0; i < sizeof BAD_TYPES / sizeof BAD_TYPES[0]; i++) {
        assert_false(trigger_is_event_type(str_from(BAD_TYPES[i])));
    }
}

static void all_faults_of_an_object_are_reported_at_once(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Trigger trigger;
    Problem problem = {0};
    assert_false(read_json(
        "{\"event_type\":\"..\",\"template\":\"A B\",\"resolver\":\"who?\",\"channel\":\"pigeon\","
        "\"category\":5,\"offset_s\":99999999999,\"name_path\":\".\",\"anchor\":\"x..y\","
        "\"obsoleted_by\":[\"a b\"],\"colour\":1}",
        arena, &trigger, &problem));
    static const char *const others[] = {"category", "colour",      "event_type", "template",
                                         "offset_s", "resolver",    "name_path",  "subject_path",
                                         "anchor",   "obsoleted_by"};
    assert_string_equal(problem.field, "channel");
    assert_int_equal(problem.more_count, sizeof others / sizeof others[0]);
    for (size_t i = 0; i < problem.more_count; i++) {
        assert_string_equal(problem.more[i].field, others[i]);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_object_comes_back_as_it_was_put),
        cmocka_unit_test(a_newer_event_supersedes_where_there_is_something_to_supersede),
        cmocka_unit_test(two_that_would_make_one_notification_collide),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(each_bad_object_gets_its_field_named),
        cmocka_unit_test(all_faults_of_an_object_are_reported_at_once),
        cmocka_unit_test(resolvers),
        cmocka_unit_test(event_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
