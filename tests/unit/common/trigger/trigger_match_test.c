// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/trigger/trigger_match.h"

typedef Stentor__V1__Trigger Trigger;

typedef struct Scene {
    Arena *arena;
    TriggerMatch *map;
} Scene;

static int set_up(void **state)
{
    static Scene scene;
    scene.arena = arena_new(0);
    scene.map = trigger_match_new();
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    trigger_match_free(s->map);
    arena_free(s->arena);
    return 0;
}

typedef struct Put {
    const char *tenant, *key, *type, *obsoleted_by;
    bool disabled;
} Put;

static Str pack(Scene *s, const Put *put)
{
    Trigger t;
    stentor__v1__trigger__init(&t);
    t.tenant = arena_cstr(s->arena, str_from(put->tenant));
    t.key = arena_cstr(s->arena, str_from(put->key));
    t.event_type = arena_cstr(s->arena, str_from(put->type));
    t.template_ = arena_cstr(s->arena, STR("welcome"));
    t.resolver = arena_cstr(s->arena, STR("address:a"));
    t.subject_path = arena_cstr(s->arena, STR("id"));
    t.disabled = put->disabled;
    char *types[1];
    if (put->obsoleted_by != NULL) {
        types[0] = arena_cstr(s->arena, str_from(put->obsoleted_by));
        t.obsoleted_by = types;
        t.n_obsoleted_by = 1;
    }
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&t.base, s->arena, &bytes, NULL));
    return bytes;
}

static void put(Scene *s, const Put *what)
{
    Error err = {0};
    if (!trigger_match_changed(
            s->map, str_from(what->tenant), str_from(what->key), pack(s, what), 7, &err)) {
        fail_msg("%s", err.text);
    }
}

// The keys that are found, with their tenants: "acme/a platform/b".
static const char *found(Scene *s, const char *tenant, const char *type, TriggerUse use)
{
    size_t count = 0;
    const Trigger **all =
        trigger_match_find(s->map, str_from(tenant), str_from(type), use, s->arena, &count);
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        text = arena_printf(
            s->arena, "%s%s%s/%s", text, i > 0 ? " " : "", all[i]->tenant, all[i]->key);
    }
    return text;
}

static void triggers_are_found_by_event_type_in_the_order_of_keys(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"acme", "b", "stay", NULL, false});
    put(s, &(Put){"acme", "a", "stay", NULL, false});
    put(s, &(Put){"acme", "c", "other", "stay", false});
    put(s, &(Put){"other", "d", "stay", NULL, false});
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "acme/a acme/b");
    assert_string_equal(found(s, "acme", "stay", TRIGGER_CANCELS), "acme/c");
    assert_string_equal(found(s, "acme", "nothing", TRIGGER_MAKES), "");
    assert_string_equal(found(s, "unknown", "stay", TRIGGER_MAKES), "");
}

static void an_order_event_has_one_type_however_it_is_spelled(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"acme", "a", "PlaceOrder", "CancelOrderCommand", false});
    put(s, &(Put){"acme", "b", "PlaceOrderCommand", NULL, false});
    put(s, &(Put){"acme", "c", "FeedbackCreated", NULL, false});
    assert_string_equal(found(s, "acme", "PlaceOrder", TRIGGER_MAKES), "acme/a acme/b");
    assert_string_equal(found(s, "acme", "PlaceOrderCommand", TRIGGER_MAKES), "acme/a acme/b");
    assert_string_equal(found(s, "acme", "CancelOrderIntegrationEvent", TRIGGER_CANCELS), "acme/a");
    assert_string_equal(found(s, "acme", "FeedbackCreatedIntegrationEvent", TRIGGER_MAKES), "");
    put(s, &(Put){"acme", "b", "other", NULL, false});
    assert_string_equal(found(s, "acme", "PlaceOrderCommand", TRIGGER_MAKES), "acme/a");
}

static void a_tenants_own_takes_the_place_of_the_platforms_of_the_same_key(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"platform", "a", "stay", "gone", false});
    put(s, &(Put){"platform", "b", "stay", NULL, false});
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "platform/a platform/b");
    put(s, &(Put){"acme", "a", "stay", NULL, false});
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "acme/a platform/b");
    assert_string_equal(found(s, "acme", "gone", TRIGGER_CANCELS), "");
    assert_string_equal(found(s, "other", "stay", TRIGGER_MAKES), "platform/a platform/b");
    assert_string_equal(found(s, "platform", "stay", TRIGGER_MAKES), "platform/a platform/b");
    put(s, &(Put){"acme", "a", "another", NULL, false}); // waits for something else now
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "platform/b");
}

static void a_disabled_one_is_an_override_that_does_nothing(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"platform", "a", "stay", "gone", false});
    put(s, &(Put){"acme", "a", "stay", "gone", true});
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "");
    assert_string_equal(found(s, "acme", "gone", TRIGGER_CANCELS), "");
    assert_true(trigger_match_get(s->map, STR("acme"), STR("a"))->disabled);
    put(s, &(Put){"platform", "a", "stay", "gone", true});
    assert_string_equal(found(s, "other", "stay", TRIGGER_MAKES), "");
}

// Its own, which may have switched the platform's off, is not known.
static void finding_02_an_unreadable_one_does_nothing_nor_does_the_platforms(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"platform", "a", "stay", "gone", false});
    trigger_match_unreadable(s->map, STR("acme"), STR("a"));
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "");
    assert_string_equal(found(s, "acme", "gone", TRIGGER_CANCELS), "");
    assert_string_equal(found(s, "other", "stay", TRIGGER_MAKES), "platform/a");
    put(s, &(Put){"acme", "a", "stay", NULL, false}); // mended
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "acme/a");
    trigger_match_unreadable(s->map, STR("acme"), STR("a")); // what is known stays
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "acme/a");
    assert_true(trigger_match_changed(s->map, STR("acme"), STR("a"), STR_EMPTY, 7, NULL));
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "platform/a");
}

static void what_is_removed_or_changed_is_found_no_more(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"platform", "a", "stay", NULL, false});
    put(s, &(Put){"acme", "a", "stay", "gone", false});
    assert_true(trigger_match_changed(s->map, STR("acme"), STR("a"), STR_EMPTY, 7, NULL));
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "platform/a");
    assert_null(trigger_match_own(s->map, STR("acme"), STR("a")));
    assert_true(trigger_match_changed(s->map, STR("acme"), STR("nothing"), STR_EMPTY, 7, NULL));
    put(s, &(Put){"platform", "a", "moved", NULL, false});
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "");
    assert_string_equal(found(s, "acme", "moved", TRIGGER_MAKES), "platform/a");
    assert_int_equal(trigger_match_count(s->map), 1);
}

static void an_entry_that_is_none_leaves_the_one_before_it(void **state)
{
    Scene *s = *state;
    put(s, &(Put){"acme", "a", "stay", NULL, false});
    Str others = pack(s, &(Put){"other", "a", "stay", NULL, false});
    Str renamed = pack(s, &(Put){"acme", "b", "stay", NULL, false});
    Str broken = pack(s, &(Put){"acme", "a", "stay..x", NULL, false});
    const Str bad[] = {others, renamed, broken, STR("\xff\xff")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Error err = {0};
        assert_false(trigger_match_changed(s->map, STR("acme"), STR("a"), bad[i], 7, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    assert_string_equal(found(s, "acme", "stay", TRIGGER_MAKES), "acme/a");
}

static void a_thousand_of_one_tenant_are_listed_and_go_again(void **state)
{
    Scene *s = *state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            const char *key = arena_printf(s->arena, "k%d", i);
            put(s, &(Put){"acme", key, i % 2 == 0 ? "even" : "odd", NULL, false});
        }
    }
    size_t count = 0;
    (void)trigger_match_list(s->map, STR("acme"), s->arena, &count);
    assert_int_equal(count, 1000);
    (void)trigger_match_find(s->map, STR("acme"), STR("odd"), TRIGGER_MAKES, s->arena, &count);
    assert_int_equal(count, 500);
    for (int i = 0; i < 1000; i++) {
        const char *key = arena_printf(s->arena, "k%d", i);
        assert_true(trigger_match_changed(s->map, STR("acme"), str_from(key), STR_EMPTY, 7, NULL));
    }
    (void)trigger_match_list(s->map, STR("acme"), s->arena, &count);
    assert_int_equal(count, 0);
    assert_int_equal(trigger_match_count(s->map), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            an_order_event_has_one_type_however_it_is_spelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            triggers_are_found_by_event_type_in_the_order_of_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_tenants_own_takes_the_place_of_the_platforms_of_the_same_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_disabled_one_is_an_override_that_does_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            finding_02_an_unreadable_one_does_nothing_nor_does_the_platforms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_removed_or_changed_is_found_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_entry_that_is_none_leaves_the_one_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_thousand_of_one_tenant_are_listed_and_go_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
