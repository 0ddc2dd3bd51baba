// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/request/catalog.h"
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
    event.published_by = arena_cstr(arena, STR("pat"));
    event.source = arena_cstr(arena, STR("tenant"));
    event.published_at_us = 7;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&event.base, arena, &bytes, NULL));
    return bytes;
}

enum { DRAFT = 1, ACTIVE = 2, ARCHIVED = 3 };

#define MAIL ((CatalogName){STR("welcome"), CHANNEL_EMAIL})

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

static void versions_are_listed_in_their_order_with_their_fields(void **state)
{
    Fixture *f = *state;
    static const char *const order[] = {"1.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0-rc.11", "2.0.0"};
    static const int put_first[] = {3, 1, 4, 0, 2};
    CatalogVersion *versions = NULL;
    CatalogVersion found;
    for (size_t i = 0; i < sizeof put_first / sizeof put_first[0]; i++) {
        put(f, "acme", order[put_first[i]], DRAFT);
    }
    size_t count = catalog_versions(f->catalog, STR("acme"), MAIL, f->arena, &versions);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(versions[i].version, order[i]);
        assert_string_equal(versions[i].published_by, "pat");
        assert_string_equal(versions[i].approved_by, "");
        assert_string_equal(versions[i].source, "tenant");
        assert_string_equal(versions[i].provenance, "");
        assert_int_equal(versions[i].published_at_us, 7);
    }
    assert_true(catalog_find(f->catalog, STR("acme"), MAIL, STR_EMPTY, &found));
    assert_string_equal(found.version, "2.0.0"); // none is active: the highest
    put(f, "acme", "1.10.0", ACTIVE);
    assert_true(catalog_find(f->catalog, STR("acme"), MAIL, STR_EMPTY, &found));
    assert_string_equal(found.version, "1.10.0");
    assert_true(catalog_template_changed(
        f->catalog, STR("acme"), STR("welcome.2_0_0-rc_1"), STR_EMPTY, NULL));
    count = catalog_versions(f->catalog, STR("acme"), MAIL, f->arena, &versions);
    assert_int_equal(count, 4);
    assert_string_equal(versions[2].version, "2.0.0-rc.11");
}

static const char *freeze_test(Fixture *f, const char *wanted, Request *ret)
{
    FieldError err = {.field = ""};
    *ret = (Request){
        .template_key = STR("welcome"),
        .template_version = str_from(wanted),
        .channel = CHANNEL_EMAIL,
        .is_test = true,
    };
    return catalog_freeze(f->catalog, STR("acme"), ret, f->arena, &err)
               ? arena_cstr(f->arena, ret->template_version)
               : err.field;
}

static void a_test_takes_a_draft_of_the_tenants_own_and_no_archived_version(void **state)
{
    Fixture *f = *state;
    Request test;
    put(f, "acme", "1.0.0", ARCHIVED);
    put(f, "acme", "2.0.0", DRAFT);
    put(f, "platform", "3.0.0", DRAFT);
    assert_string_equal(freeze_test(f, "2.0.0", &test), "2.0.0");
    assert_int_equal(test.retention, RETENTION_STANDARD);
    assert_string_equal(freeze_test(f, "1.0.0", &test), "template_version");
    assert_string_equal(freeze_test(f, "3.0.0", &test), "template_version");
    put(f, "platform", "3.0.0", ACTIVE);
    assert_string_equal(freeze_test(f, "3.0.0", &test), "3.0.0");
}

static void a_named_version_is_neither_archived_nor_a_draft(void **state)
{
    Fixture *f = *state;
    put(f, "acme", "1.0.0", ARCHIVED);
    put(f, "acme", "2.0.0", DRAFT);
    assert_string_equal(freeze(f, "acme", "1.0.0", NULL), "template_version");
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
        assert_int_equal(catalog_tenant(f->catalog, STR("acme"))->gate.suspended, suspended);
        assert_false(catalog_tenant(f->catalog, STR("other"))->gate.suspended);
    }
}

static void finding_02_a_tenant_that_cannot_be_read_counts_as_suspended(void **state)
{
    Fixture *f = *state;
    catalog_tenant_unreadable(f->catalog, STR("acme"));
    assert_true(catalog_tenant(f->catalog, STR("acme"))->gate.suspended);
    assert_false(catalog_tenant(f->catalog, STR("other"))->gate.suspended);
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(f->arena, STR("acme"));
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&tenant.base, f->arena, &bytes, NULL));
    assert_true(catalog_tenant_changed(f->catalog, STR("acme"), bytes, NULL));
    assert_false(catalog_tenant(f->catalog, STR("acme"))->gate.suspended);
    catalog_tenant_unreadable(f->catalog, STR("acme")); // what is known stays
    assert_false(catalog_tenant(f->catalog, STR("acme"))->gate.suspended);
}

static TenantStanding standing(const Fixture *f, const char *tenant)
{
    return catalog_standing(f->catalog, str_from(tenant));
}

static void only_a_tenant_with_an_entry_and_the_platform_are_known(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Str bytes = STR_EMPTY;
    Stentor__V1__Tenant tenant;
    assert_int_equal(standing(f, "acme"), STANDING_UNKNOWN);
    assert_int_equal(standing(f, "platform"), STANDING_ACTIVE);
    assert_false(catalog_may_send(f->catalog, STR("acme"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "stentor tenant put acme"));
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(f->arena, STR("acme"));
    assert_true(event_pack(&tenant.base, f->arena, &bytes, NULL));
    assert_true(catalog_tenant_changed(f->catalog, STR("acme"), bytes, NULL));
    assert_int_equal(standing(f, "acme"), STANDING_ACTIVE);
    assert_true(catalog_may_send(f->catalog, STR("acme"), &err));
    assert_true(catalog_tenant_changed(f->catalog, STR("acme"), STR_EMPTY, NULL));
    assert_int_equal(standing(f, "acme"), STANDING_UNKNOWN);
    catalog_tenant_unreadable(f->catalog, STR("acme"));
    assert_int_equal(standing(f, "acme"), STANDING_SUSPENDED);
    catalog_accept_unknown(f->catalog);
    assert_int_equal(standing(f, "other"), STANDING_ACTIVE);
}

static void a_tenant_that_is_being_deleted_is_suspended_too(void **state)
{
    Fixture *f = *state;
    Error err = {0};
    Str bytes = STR_EMPTY;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(f->arena, STR("acme"));
    tenant.status = STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
    for (int suspended = 1; suspended >= 0; suspended--) {
        tenant.suspended = suspended; // an earlier release lifts it by this alone
        assert_true(event_pack(&tenant.base, f->arena, &bytes, NULL));
        assert_true(catalog_tenant_changed(f->catalog, STR("acme"), bytes, NULL));
        assert_int_equal(standing(f, "acme"), suspended ? STANDING_DELETING : STANDING_ACTIVE);
        assert_int_equal(catalog_tenant(f->catalog, STR("acme"))->gate.suspended, suspended);
        assert_int_equal(catalog_may_send(f->catalog, STR("acme"), &err), !suspended);
    }
}

static bool put_tenant(Fixture *f, Stentor__V1__Tenant *tenant, Error *err)
{
    tenant->tenant = arena_cstr(f->arena, STR("acme"));
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&tenant->base, f->arena, &bytes, NULL));
    return catalog_tenant_changed(f->catalog, STR("acme"), bytes, err);
}

static void a_tenants_settings_are_known_and_forgotten(void **state)
{
    Fixture *f = *state;
    Stentor__V1__QuietHours hours;
    stentor__v1__quiet_hours__init(&hours);
    hours.start_minute = 1320;
    hours.end_minute = 420;
    Stentor__V1__Limits limits;
    stentor__v1__limits__init(&limits);
    limits.per_minute = 5;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.time_zone = arena_cstr(f->arena, STR("Europe/Berlin"));
    tenant.default_locale = arena_cstr(f->arena, STR("de-DE"));
    tenant.quiet_hours = &hours;
    tenant.recipient_limits = &limits;
    tenant.over_limit = STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    tenant.guardian_routing = STENTOR__V1__GUARDIAN_ROUTING__GUARDIAN_ROUTING_COPY;
    assert_true(put_tenant(f, &tenant, NULL));
    const TenantSettings *settings = catalog_tenant(f->catalog, STR("acme"));
    assert_ptr_equal(
        settings->gate.zone, zones_get(catalog_zones(f->catalog), STR("Europe/Berlin"), NULL));
    assert_string_equal(settings->default_locale, "de-DE");
    assert_int_equal(settings->gate.quiet_hours.start_minute, 1320);
    assert_int_equal(settings->gate.quiet_hours.end_minute, 420);
    assert_int_equal(settings->gate.recipient_limits.per_minute, 5);
    assert_int_equal(settings->gate.limits.per_minute, 0);
    assert_int_equal(settings->gate.over_limit, OVER_LIMIT_SUPPRESS);
    assert_int_equal(settings->gate.guardian_routing, GUARDIAN_COPY);
    assert_true(catalog_tenant_changed(f->catalog, STR("acme"), STR_EMPTY, NULL));
    assert_null(catalog_tenant(f->catalog, STR("acme"))->gate.zone);
}

static void a_tenants_entry_counts_but_for_what_is_wrong_in_it(void **state)
{
    Fixture *f = *state;
    Stentor__V1__QuietHours hours;
    stentor__v1__quiet_hours__init(&hours);
    hours.start_minute = 4000000000U;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.suspended = true;
    tenant.time_zone = arena_cstr(f->arena, STR("Mars/Olympus"));
    Error err = {0};
    assert_false(put_tenant(f, &tenant, &err));
    assert_non_null(strstr(err.text, "'Mars/Olympus'"));
    assert_true(catalog_tenant(f->catalog, STR("acme"))->gate.suspended); // not lost with the zone
    tenant.time_zone = arena_cstr(f->arena, STR("Asia/Tokyo"));
    tenant.quiet_hours = &hours;
    assert_false(put_tenant(f, &tenant, &err));
    assert_non_null(strstr(err.text, "quiet hours"));
    const GateTenant *gate = &catalog_tenant(f->catalog, STR("acme"))->gate;
    assert_non_null(gate->zone);
    assert_int_equal(gate->quiet_hours.start_minute, gate->quiet_hours.end_minute);
}

static void put_named(Fixture *f, const char *tenant, const char *key, Channel channel)
{
    Stentor__V1__TemplateVersion event;
    stentor__v1__template_version__init(&event);
    event.tenant = arena_cstr(f->arena, str_from(tenant));
    event.key = arena_cstr(f->arena, str_from(key));
    event.version = arena_cstr(f->arena, STR("1.0.0"));
    event.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    event.channel = (Stentor__V1__Channel)channel;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&event.base, f->arena, &bytes, NULL));
    char *subject_key = arena_printf(f->arena, "%s.1_0_0", key);
    assert_true(
        catalog_template_changed(f->catalog, str_from(tenant), str_from(subject_key), bytes, NULL));
}

static void a_digests_template_is_the_categorys_own_or_the_common_one(void **state)
{
    Fixture *f = *state;
    Request request = {.category = CATEGORY_SOCIAL, .channel = CHANNEL_EMAIL};
    DigestTarget target;
    assert_false(catalog_digest(f->catalog, STR("acme"), &request, f->arena, &target));
    put_named(f, "platform", "digest", CHANNEL_NONE);
    assert_true(catalog_digest(f->catalog, STR("acme"), &request, f->arena, &target));
    assert_true(str_eq(target.template_key, STR("digest")));
    assert_true(str_eq(target.template_version, STR("1.0.0")));
    put_named(f, "acme", "digest-social", CHANNEL_SMS); // of another channel
    assert_true(catalog_digest(f->catalog, STR("acme"), &request, f->arena, &target));
    assert_true(str_eq(target.template_key, STR("digest")));
    request.channel = CHANNEL_SMS;
    assert_true(catalog_digest(f->catalog, STR("acme"), &request, f->arena, &target));
    assert_true(str_eq(target.template_key, STR("digest-social")));
}

// ---- a key on several channels ----

// `subject_key`: "spring.sms.2_0_0", or without the channel.
static bool put_on(
    Fixture *f, const char *subject_key, Channel channel, const char *version, int status)
{
    Stentor__V1__TemplateVersion event;
    stentor__v1__template_version__init(&event);
    event.tenant = arena_cstr(f->arena, STR("acme"));
    event.key = arena_cstr(f->arena, STR("spring"));
    event.version = arena_cstr(f->arena, str_from(version));
    event.status = (Stentor__V1__TemplateStatus)status;
    event.channel = (Stentor__V1__Channel)channel;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&event.base, f->arena, &bytes, NULL));
    return catalog_template_changed(f->catalog, STR("acme"), str_from(subject_key), bytes, NULL);
}

// The version that a request of the channel gets, or why it gets none.
static const char *freeze_on(Fixture *f, Channel channel, const char *wanted)
{
    Request request = {
        .template_key = STR("spring"), .template_version = str_from(wanted), .channel = channel};
    FieldError err = {.field = ""};
    return catalog_freeze(f->catalog, STR("acme"), &request, f->arena, &err)
               ? arena_cstr(f->arena, request.template_version)
               : arena_cstr(f->arena, str_from(err.text));
}

static void each_channel_of_a_key_has_its_own_versions(void **state)
{
    Fixture *f = *state;
    assert_true(put_on(f, "spring.email.1_0_0", CHANNEL_EMAIL, "1.0.0", ACTIVE));
    assert_true(put_on(f, "spring.sms.2_0_0", CHANNEL_SMS, "2.0.0", ACTIVE));
    assert_true(put_on(f, "spring.push.1_0_0", CHANNEL_PUSH, "1.0.0", DRAFT));
    assert_string_equal(freeze_on(f, CHANNEL_EMAIL, ""), "1.0.0");
    assert_string_equal(freeze_on(f, CHANNEL_SMS, ""), "2.0.0");
    assert_string_equal(
        freeze_on(f, CHANNEL_EMAIL, "2.0.0"),
        "template 'spring' has no usable version '2.0.0' for email");
    assert_string_equal(
        freeze_on(f, CHANNEL_PUSH, ""), "template 'spring' has no active version for push");
    assert_string_equal(
        freeze_on(f, CHANNEL_VOICE, ""),
        "template 'spring' is not for channel 'voice'; it is for email, sms, push");
    assert_false(put_on(f, "spring.email.3_0_0", CHANNEL_SMS, "3.0.0", ACTIVE));
    assert_true(catalog_template_changed(
        f->catalog, STR("acme"), STR("spring.sms.2_0_0"), STR_EMPTY, NULL));
    assert_string_equal(
        freeze_on(f, CHANNEL_SMS, ""),
        "template 'spring' is not for channel 'sms'; it is for email, push");
    assert_string_equal(freeze_on(f, CHANNEL_EMAIL, ""), "1.0.0");
}

// As releases before 2026-11-23 stored it: the message's own channel says which.
static void a_subject_without_a_channel_is_read_as_before(void **state)
{
    Fixture *f = *state;
    CatalogVersion *versions = NULL;
    const CatalogName mail = {STR("spring"), CHANNEL_EMAIL};
    assert_true(put_on(f, "spring.1_0_0", CHANNEL_NONE, "1.0.0", ACTIVE));
    assert_true(put_on(f, "spring.2_0_0", CHANNEL_SMS, "2.0.0", ACTIVE));
    assert_string_equal(freeze_on(f, CHANNEL_EMAIL, ""), "1.0.0"); // was "is for channel 'sms'"
    assert_string_equal(freeze_on(f, CHANNEL_SMS, ""), "2.0.0");
    assert_true(put_on(f, "spring.email.1_0_0", CHANNEL_EMAIL, "1.0.0", ARCHIVED));
    assert_string_equal(
        freeze_on(f, CHANNEL_EMAIL, ""), "template 'spring' has no active version for email");
    assert_true(put_on(f, "spring.1_0_0", CHANNEL_NONE, "1.0.0", ACTIVE)); // again changes nothing
    assert_string_equal(
        freeze_on(f, CHANNEL_EMAIL, ""), "template 'spring' has no active version for email");
    assert_int_equal(catalog_versions(f->catalog, STR("acme"), mail, f->arena, &versions), 1);
    assert_false(versions[0].unplaced);
    assert_true(catalog_template_changed(
        f->catalog, STR("acme"), STR("spring.email.1_0_0"), STR_EMPTY, NULL));
    assert_string_equal(freeze_on(f, CHANNEL_EMAIL, ""), "1.0.0");
    assert_true(
        catalog_template_changed(f->catalog, STR("acme"), STR("spring.1_0_0"), STR_EMPTY, NULL));
    assert_int_equal(catalog_channels(f->catalog, STR("acme"), STR("spring")), 1U << CHANNEL_SMS);
}

static void an_old_draft_that_moves_to_another_channel_leaves_the_first(void **state)
{
    Fixture *f = *state;
    assert_true(put_on(f, "spring.1_0_0", CHANNEL_EMAIL, "1.0.0", DRAFT));
    assert_true(put_on(f, "spring.1_0_0", CHANNEL_SMS, "1.0.0", ACTIVE));
    assert_string_equal(freeze_on(f, CHANNEL_SMS, ""), "1.0.0");
    assert_int_equal(catalog_channels(f->catalog, STR("acme"), STR("spring")), 1U << CHANNEL_SMS);
}

static void templates_are_listed_by_key_and_channel(void **state)
{
    Fixture *f = *state;
    CatalogName names[3];
    put(f, "acme", "1.0.0", ACTIVE);
    assert_true(put_on(f, "spring.sms.1_0_0", CHANNEL_SMS, "1.0.0", ACTIVE));
    assert_true(put_on(f, "spring.email.1_0_0", CHANNEL_EMAIL, "1.0.0", ACTIVE));
    const CatalogName none = {.key = STR_EMPTY};
    assert_int_equal(
        catalog_names(f->catalog, STR("acme"), none, CHANNEL_NONE, 2, f->arena, names), 2);
    assert_true(str_eq(names[0].key, STR("spring")) && names[0].channel == CHANNEL_EMAIL);
    assert_true(str_eq(names[1].key, STR("spring")) && names[1].channel == CHANNEL_SMS);
    const CatalogName last = names[1];
    assert_int_equal(
        catalog_names(f->catalog, STR("acme"), last, CHANNEL_NONE, 2, f->arena, names), 1);
    assert_true(str_eq(names[0].key, STR("welcome")));
    assert_int_equal(
        catalog_names(f->catalog, STR("acme"), none, CHANNEL_SMS, 3, f->arena, names), 1);
    assert_int_equal(
        catalog_names(f->catalog, STR("other"), none, CHANNEL_NONE, 3, f->arena, names), 0);
}

// Puts version 1.0.0 of 'bill' with such a required variable beside an optional one.
static void put_requiring(Fixture *f, const char *tenant, const char *version, char *name)
{
    Stentor__V1__TemplateVariable wanted, optional;
    stentor__v1__template_variable__init(&wanted);
    stentor__v1__template_variable__init(&optional);
    wanted.name = name;
    wanted.required = name != NULL;
    wanted.name = name != NULL ? name : optional.name;
    optional.name = arena_cstr(f->arena, STR("note"));
    Stentor__V1__TemplateVariable *variables[] = {&optional, &wanted};
    Stentor__V1__TemplateVersion event;
    stentor__v1__template_version__init(&event);
    event.tenant = arena_cstr(f->arena, str_from(tenant));
    event.key = arena_cstr(f->arena, STR("bill"));
    event.version = arena_cstr(f->arena, str_from(version));
    event.status = (Stentor__V1__TemplateStatus)ACTIVE;
    event.variables = variables;
    event.n_variables = 2;
    Str bytes = STR_EMPTY;
    assert_true(event_pack(&event.base, f->arena, &bytes, NULL));
    assert_true(catalog_template_changed(f->catalog, str_from(tenant), STR("bill.x"), bytes, NULL));
}

static const char *required(Fixture *f, const char *version)
{
    Request request = {.template_key = STR("bill"), .template_version = str_from(version)};
    const char *found = catalog_required(f->catalog, STR("acme"), &request);
    return found == NULL ? "-" : found;
}

static void each_version_has_its_own_required_variables(void **state)
{
    Fixture *f = *state;
    assert_string_equal(required(f, "1.0.0"), "-"); // not known
    put_requiring(f, "platform", "1.0.0", arena_cstr(f->arena, STR("theirs")));
    assert_string_equal(required(f, "1.0.0"), "theirs");
    put_requiring(f, "acme", "1.0.0", arena_cstr(f->arena, STR("order.id")));
    put_requiring(f, "acme", "2.0.0", NULL);
    assert_string_equal(required(f, "1.0.0"), "order.id"); // pinned, and the tenant's own
    assert_string_equal(required(f, "2.0.0"), "-");
    put_requiring(f, "acme", "2.0.0", arena_cstr(f->arena, STR("unsubscribe_url")));
    assert_string_equal(required(f, "2.0.0"), "-"); // the renderer sets it
    put_requiring(f, "acme", "2.0.0", arena_cstr(f->arena, STR("name")));
    assert_string_equal(required(f, "2.0.0"), "name");
    assert_true(
        catalog_template_changed(f->catalog, STR("acme"), STR("bill.1_0_0"), STR_EMPTY, NULL));
    assert_string_equal(required(f, "1.0.0"), "theirs"); // the platform's is the one that is left
}

// Nanoseconds a freeze takes; the least of some rounds, for others use the machine too.
static int64_t freeze_ns(Fixture *f, size_t templates)
{
    enum { ROUNDS = 7, FREEZES = 2000 };
    int64_t best_us = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        Arena *arena = arena_new(0);
        int64_t began_us = clock_thread_cpu_us();
        for (size_t i = 0; i < FREEZES; i++) {
            Request request = {.channel = CHANNEL_EMAIL};
            request.template_key =
                str_from(arena_printf(arena, "t%zu", i * 2654435761U % templates));
            FieldError err = {.field = ""};
            assert_true(catalog_freeze(f->catalog, STR("acme"), &request, arena, &err));
        }
        int64_t took_us = clock_thread_cpu_us() - began_us;
        best_us = took_us < best_us ? took_us : best_us;
        arena_free(arena);
    }
    return best_us * 1000 / FREEZES;
}

static void a_hundred_thousand_templates_do_not_slow_a_freeze(void **state)
{
    enum { FEW = 100, MANY = 100000, ALLOWED_NS = 4000 };
    Fixture *f = *state;
    for (size_t i = 0; i < FEW; i++) {
        put_named(f, "acme", arena_printf(f->arena, "t%zu", i), CHANNEL_EMAIL);
    }
    int64_t few_ns = freeze_ns(f, FEW);
    for (size_t i = FEW; i < MANY; i++) {
        put_named(f, "acme", arena_printf(f->arena, "t%zu", i), CHANNEL_EMAIL);
        arena_reset(f->arena);
    }
    assert_int_equal(catalog_templates(f->catalog), MANY);
    int64_t many_ns = freeze_ns(f, MANY);
    print_message("a freeze takes %d ns of 100, %d ns of 100,000\n", (int)few_ns, (int)many_ns);
    assert_true(many_ns < few_ns * 5 + ALLOWED_NS); // a walk along the list would be 1,000 times
}

static void a_category_is_kept_as_the_tenant_or_the_installation_says(void **state)
{
    Fixture *f = *state;
    RetentionClasses classes;
    assert_int_equal(
        catalog_retention(f->catalog, STR("acme"), CATEGORY_MARKETING), RETENTION_STANDARD);
    assert_true(retention_classes_parse(STR("marketing=record"), &classes, NULL));
    catalog_set_classes(f->catalog, &classes);
    assert_int_equal(
        catalog_retention(f->catalog, STR("acme"), CATEGORY_MARKETING), RETENTION_RECORD);
    Stentor__V1__Tenant entry;
    Stentor__V1__CategoryRetention own[2];
    stentor__v1__tenant__init(&entry);
    entry.tenant = arena_cstr(f->arena, STR("acme"));
    for (int i = 0; i < 2; i++) {
        stentor__v1__category_retention__init(&own[i]);
    }
    own[0].category = STENTOR__V1__CATEGORY__CATEGORY_BILLING;
    own[0].class_ = arena_cstr(f->arena, STR("brief"));
    own[1].category = STENTOR__V1__CATEGORY__CATEGORY_SOCIAL;
    own[1].class_ = arena_cstr(f->arena, STR("a newer one"));
    entry.retention = (Stentor__V1__CategoryRetention *[]){&own[0], &own[1]};
    entry.n_retention = 2;
    Str payload = STR_EMPTY;
    assert_true(event_pack(&entry.base, f->arena, &payload, NULL));
    assert_true(catalog_tenant_changed(f->catalog, STR("acme"), payload, NULL));
    put(f, "acme", "1.0.0", ACTIVE); // for billing
    Request request = {.template_key = STR("welcome"), .channel = CHANNEL_EMAIL};
    assert_true(catalog_freeze(f->catalog, STR("acme"), &request, f->arena, NULL));
    assert_int_equal(request.retention, RETENTION_BRIEF);
    assert_int_equal(catalog_retention(f->catalog, STR("acme"), CATEGORY_SOCIAL), RETENTION_RECORD);
    assert_int_equal(
        catalog_retention(f->catalog, STR("other"), CATEGORY_BILLING), RETENTION_RECORD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_category_is_kept_as_the_tenant_or_the_installation_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_highest_active_version_is_frozen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            versions_are_listed_in_their_order_with_their_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_named_version_is_neither_archived_nor_a_draft, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_test_takes_a_draft_of_the_tenants_own_and_no_archived_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_tenants_own_template_wins_over_the_platforms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_tenants_template_is_unknown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_removed_version_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_entry_for_another_tenant_or_of_garbage_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tenant_is_suspended_and_released, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            only_a_tenant_with_an_entry_and_the_platform_are_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_tenant_that_is_being_deleted_is_suspended_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            finding_02_a_tenant_that_cannot_be_read_counts_as_suspended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_tenants_settings_are_known_and_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_tenants_entry_counts_but_for_what_is_wrong_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_digests_template_is_the_categorys_own_or_the_common_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            each_channel_of_a_key_has_its_own_versions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_subject_without_a_channel_is_read_as_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_old_draft_that_moves_to_another_channel_leaves_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(templates_are_listed_by_key_and_channel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            each_version_has_its_own_required_variables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_hundred_thousand_templates_do_not_slow_a_freeze, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
