// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/ingest/catalog.h"
#include "stentor/v1/config.pb-c.h"

static Str pack_template(Arena *arena, const char *tenant, const char *version, int status)
{
    Stentor__V1__TemplateVersion event;
    stentor__v1__template_version__init(&event);
    event.tenant = arena_cstr(arena, str_from(tenant));
    event.key = arena_cstr(arena, STR("welcome"));
    event.version = arena_cstr(arena, str_from(version));
    event.status = (Stentor__V1__TemplateStatus)status;
    event.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    event.category = STENTOR__V1__CATEGORY__CATEGORY_BILLING;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&event.base, arena, &bytes, NULL));
    return bytes;
}

enum { DRAFT = 1, ACTIVE = 2, ARCHIVED = 3 };

typedef struct Fixture {
    Arena *arena;
    Catalog *catalog;
} Fixture;

static void put(Fixture *f, const char *tenant, const char *version, int status)
{
    Error err = {0};
    Str bytes = pack_template(f->arena, tenant, version, status);
    if (!catalog_template_changed(f->catalog, str_from(tenant), STR("welcome.x"), bytes, &err)) {
        fail_msg("%s", err.text);
    }
}

// The version that a request for 'welcome' is frozen to, or the field that is wrong.
static const char *freeze(
    Fixture *f, const char *tenant, const char *wanted, Category *ret_category)
{
    Request request = {
        .template_key = STR("welcome"),
        .template_version = str_from(wanted),
        .channel = CHANNEL_EMAIL,
    };
    FieldError err = {.field = ""};
    if (!catalog_freeze(f->catalog, str_from(tenant), &request, f->arena, &err)) {
        return err.field;
    }
    if (ret_category != NULL) {
        *ret_category = request.category;
    }
    return arena_cstr(f->arena, request.template_version);
}

static int set_up(void **state)
{
    static Fixture fixture;
    fixture.arena = arena_new(0);
    fixture.catalog = catalog_new();
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    catalog_free(f->catalog);
    arena_free(f->arena);
    return 0;
}

static void the_highest_active_version_is_frozen(void **state)
{
    Fixture *f = *state;
    put(f, "acme", "1.9.0", ACTIVE);
    put(f, "acme", "1.10.0", ACTIVE);
    put(f, "acme", "2.0.0", DRAFT);
    put(f, "acme", "1.2.0", ARCHIVED);
    Category category = CATEGORY_NONE;
    assert_string_equal(freeze(f, "acme", "", &category), "1.10.0");
    assert_int_equal(category, CATEGORY_BILLING);
    put(f, "acme", "1.10.0", ARCHIVED);
    assert_string_equal(freeze(f, "acme", "", NULL), "1.9.0");
}

static void a_named_version_may_be_archived_but_not_a_draft(void **state)
{
    Fixture *f = *state;
    put(f, "acme", "1.0.0", ARCHIVED);
    put(f, "acme", "2.0.0", DRAFT);
    assert_string_equal(freeze(f, "acme", "1.0.0", NULL), "1.0.0");
    assert_string_equal(freeze(f, "acme", "2.0.0", NULL), "template_version");
    assert_string_equal(freeze(f, "acme", "3.0.0", NULL), "template_version");
    assert_string_equal(freeze(f, "acme", "", NULL), "template");
}

static void the_tenants_own_template_wins_over_the_platforms(void **state)
{
    Fixture *f = *state;
    put(f, "platform", "5.0.0", ACTIVE);
    assert_string_equal(freeze(f, "acme", "", NULL), "5.0.0");
    put(f, "acme", "1.0.0", ACTIVE);
    assert_string_equal(freeze(f, "acme", "", NULL), "1.0.0");
    assert_string_equal(freeze(f, "other", "", NULL), "5.0.0");
}

static void another_tenants_template_is_unknown(void **state)
{
    Fixture *f = *state;
    put(f, "acme", "1.0.0", ACTIVE);
    assert_string_equal(freeze(f, "other", "", NULL), "template");
}

static void a_removed_version_is_gone(void **state)
{
    Fixture *f = *state;
    put(f, "acme", "1.0.0", ACTIVE);
    put(f, "acme", "2.0.0", ACTIVE);
    assert_true(
        catalog_template_changed(f->catalog, STR("acme"), STR("welcome.2_0_0"), STR_EMPTY, NULL));
    assert_string_equal(freeze(f, "acme", "", NULL), "1.0.0");
    assert_true(
        catalog_template_changed(f->catalog, STR("acme"), STR("nothing.2_0_0"), STR_EMPTY, NULL));
}

static void an_entry_for_another_tenant_or_of_garbage_is_refused(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Str bytes = pack_template(f->arena, "acme", "1.0.0", ACTIVE);
    assert_false(
        catalog_template_changed(f->catalog, STR("other"), STR("welcome.1_0_0"), bytes, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(catalog_template_changed(
        f->catalog, STR("acme"), STR("welcome.1_0_0"), STR("\xff\xff"), &err));
    bytes = pack_template(f->arena, "acme", "latest", ACTIVE);
    assert_false(
        catalog_template_changed(f->catalog, STR("acme"), STR("welcome.latest"), bytes, &err));
    assert_int_equal(catalog_templates(f->catalog), 0);
}

static void a_tenant_is_suspended_and_released(void **state)
{
    Fixture *f = *state;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(f->arena, STR("acme"));
    for (int suspended = 1; suspended >= 0; suspended--) {
        tenant.suspended = suspended;
        Str bytes = STR_EMPTY;
        assert_true(event_pack(&tenant.base, f->arena, &bytes, NULL));
        assert_true(catalog_tenant_changed(f->catalog, STR("acme"), bytes, NULL));
        assert_int_equal(catalog_is_suspended(f->catalog, STR("acme")), suspended);
        assert_false(catalog_is_suspended(f->catalog, STR("other")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_highest_active_version_is_frozen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_named_version_may_be_archived_but_not_a_draft, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_tenants_own_template_wins_over_the_platforms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_tenants_template_is_unknown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_removed_version_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_entry_for_another_tenant_or_of_garbage_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tenant_is_suspended_and_released, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
