// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/trigger/named_resolvers.h"

typedef Stentor__V1__NamedResolver Entry;

static Str packed(Arena *arena, const char *tenant, const char *name, const char *rule)
{
    Entry entry;
    Str payload = STR_EMPTY;
    char *rules[] = {arena_cstr(arena, str_from(rule))};
    stentor__v1__named_resolver__init(&entry);
    entry.tenant = arena_cstr(arena, str_from(tenant));
    entry.name = arena_cstr(arena, str_from(name));
    entry.rules = rules;
    entry.n_rules = 1;
    assert_true(event_pack(&entry.base, arena, &payload, NULL));
    return payload;
}

static void put(NamedResolvers *map, const char *tenant, const char *name, const char *rule)
{
    Arena *arena = arena_new(0);
    Error err = {0};
    Str payload = packed(arena, tenant, name, rule);
    if (!named_resolvers_changed(map, str_from(tenant), str_from(name), payload, 7, &err)) {
        fail_msg("%s", err.text);
    }
    arena_free(arena);
}

static void assert_rule(const NamedResolvers *map, const char *name, const char *rule)
{
    NamedRules named;
    assert_true(named_resolvers_find(map, STR("acme"), str_from(name), &named));
    assert_string_equal(named.rules[0], rule);
}

static void a_tenants_own_one_wins_over_the_platforms_and_that_over_the_built_in(void **state)
{
    (void)state;
    NamedRules named;
    NamedResolvers *map = named_resolvers_new();
    assert_rule(NULL, "tenant_admins", "label:admin");
    put(map, "platform", "tenant_admins", "label:owner");
    assert_rule(map, "tenant_admins", "label:owner");
    put(map, "acme", "tenant_admins", "label:chief");
    assert_rule(map, "tenant_admins", "label:chief");
    put(map, "acme", "tenant_admins", "label:boss"); // in its place
    assert_rule(map, "tenant_admins", "label:boss");
    assert_true(named_resolvers_find(map, STR("globex"), STR("tenant_admins"), &named));
    assert_string_equal(named.rules[0], "label:owner");
    Str name = STR("tenant_admins");
    assert_true(named_resolvers_changed(map, STR("acme"), name, STR_EMPTY, 8, NULL));
    assert_true(named_resolvers_changed(map, STR("platform"), name, STR_EMPTY, 9, NULL));
    assert_rule(map, "tenant_admins", "label:admin");
    assert_false(named_resolvers_find(map, STR("acme"), STR("unknown"), &named));
    named_resolvers_free(map);
}

static void one_that_cannot_be_read_finds_no_recipient(void **state)
{
    (void)state;
    NamedRules named;
    NamedResolvers *map = named_resolvers_new();
    named_resolvers_unreadable(map, STR("acme"), STR("tenant_admins"));
    assert_true(named_resolvers_find(map, STR("acme"), STR("tenant_admins"), &named));
    assert_int_equal(named.count, 0);
    put(map, "acme", "tenant_admins", "label:chief");
    named_resolvers_unreadable(map, STR("acme"), STR("tenant_admins")); // what was known stays
    assert_rule(map, "tenant_admins", "label:chief");
    named_resolvers_free(map);
}

static void all_are_listed_in_order_and_named_in_a_message(void **state)
{
    (void)state;
    NamedRules *all = NULL;
    Arena *arena = arena_new(0);
    NamedResolvers *map = named_resolvers_new();
    put(map, "acme", "night_desk", "label:night");
    put(map, "acme", "day_desk", "label:day");
    put(map, "acme", "iam_subject", "recipient:who");
    put(map, "platform", "owner", "label:owner");
    put(map, "globex", "secret", "label:x");
    assert_int_equal(named_resolvers_list(map, STR("acme"), arena, &all), 8);
    static const char *const NAMES[] = {"day_desk",      "iam_subject",    "night_desk",
                                        "owner",         "iam_subject",    "primary_guest",
                                        "tenant_admins", "vendor_assignee"};
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(all[i].name, NAMES[i]);
        assert_int_equal(all[i].in_force, i != 4);
    }
    assert_string_equal(
        named_resolvers_text(map, STR("acme"), arena),
        "day_desk, iam_subject, night_desk, owner, primary_guest, tenant_admins, vendor_assignee");
    named_resolvers_free(map);
    arena_free(arena);
}

static void an_entry_that_keeps_no_rules_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *tenant, *name, *rule, *words;
    } cases[] = {
        {"acme", "night_desk", "primary_guest", "rule 1: 'primary_guest' is a name"},
        {"acme", "night_desk", "label:No", "rule 1: 'No' is not a label"},
        {"acme", "night_desk", "address:", "rule 1: '' is not a path"},
        {"acme", "Night", "label:a", "not a name such as"},
        {"globex", "night_desk", "label:a", "the entry names resolver"},
    };
    NamedResolvers *map = named_resolvers_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        NamedRules named;
        Error err = {0};
        Arena *arena = arena_new(0);
        Str payload = packed(arena, cases[i].tenant, cases[i].name, cases[i].rule);
        Str name = str_from(cases[i].name);
        assert_false(named_resolvers_changed(map, STR("acme"), name, payload, 1, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, cases[i].words) == NULL) {
            fail_msg("case %zu: %s", i, err.text);
        }
        assert_false(named_resolvers_own(map, STR("acme"), name, &named));
        arena_free(arena);
    }
    named_resolvers_free(map);
}

static void what_is_built_in_keeps_the_rules(void **state)
{
    (void)state;
    size_t count = 0;
    const BuiltIn *all = resolver_all_built_in(&count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        Entry entry;
        FieldError wrong = {.field = ""};
        stentor__v1__named_resolver__init(&entry);
        entry.name = (char *)(uintptr_t)all[i].name;
        entry.rules = (char **)(uintptr_t)all[i].rules;
        entry.n_rules = all[i].count;
        if (!named_resolver_check(&entry, &wrong)) {
            fail_msg("%s: %s", all[i].name, wrong.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenants_own_one_wins_over_the_platforms_and_that_over_the_built_in),
        cmocka_unit_test(one_that_cannot_be_read_finds_no_recipient),
        cmocka_unit_test(all_are_listed_in_order_and_named_in_a_message),
        cmocka_unit_test(an_entry_that_keeps_no_rules_is_refused),
        cmocka_unit_test(what_is_built_in_keeps_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
