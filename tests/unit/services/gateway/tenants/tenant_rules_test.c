// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/gateway/tenants/tenant_rules.h"

#define STORED                                                                                     \
    "{\"sender_address\":\"hello@acme.test\",\"sender_domains\":[\"acme.test\",\"*.acme.test\"],"  \
    "\"limits\":{\"per_minute\":5,\"per_day\":0},\"recipient_limits\":{\"per_day\":9},"            \
    "\"over_limit\":\"suppress\"}"
#define LEGACY "{\"sender_address\":\"hello@old.test\"}"

static unsigned read_it(const char *json, Arena *arena, Stentor__V1__Tenant *ret)
{
    unsigned named = 0;
    ApiBody body;
    stentor__v1__tenant__init(ret);
    ret->tenant = arena_cstr(arena, STR("acme"));
    assert_true(api_body_parse(&body, str_from(json), arena));
    assert_true(tenant_json_read(&body, ret, &named) && api_body_end(&body));
    api_body_free(&body);
    return named;
}

// "": fine; else the field that is refused.
static void assert_verdict(
    const char *stored_json, const char *json, TenantVerdict wanted, const char *field)
{
    Arena *arena = arena_new(0);
    FieldError err = {.field = ""};
    Stentor__V1__Tenant stored;
    Stentor__V1__Tenant tenant;
    if (stored_json != NULL) {
        (void)read_it(stored_json, arena, &stored);
    }
    unsigned named = read_it(json, arena, &tenant);
    TenantVerdict verdict =
        tenant_rules_apply(stored_json != NULL ? &stored : NULL, named, &tenant, &err);
    if (verdict != wanted || !str_eq(str_from(err.field), str_from(field))) {
        fail_msg("%s: verdict %d, field '%s' %s", json, verdict, err.field, err.text);
    }
    if (verdict == TENANT_FINE && stored_json != NULL) {
        assert_int_equal(tenant.n_sender_domains, stored.n_sender_domains);
        assert_ptr_equal(tenant.tenant_limits, stored.tenant_limits);
        assert_ptr_equal(tenant.recipient_limits, stored.recipient_limits);
        assert_int_equal(tenant.over_limit, stored.over_limit);
        assert_int_equal(tenant.suspended, stored.suspended);
    }
    arena_free(arena);
}

static void finding_11_the_operators_fields_are_kept_and_may_be_repeated(void **state)
{
    (void)state;
    assert_verdict(STORED, "{}", TENANT_FINE, "");
    assert_verdict(STORED, STORED, TENANT_FINE, "");
    assert_verdict(STORED, "{\"suspended\":false,\"tenant\":\"acme\"}", TENANT_FINE, "");
    assert_verdict(STORED, "{\"status\":\"active\",\"suspended\":false}", TENANT_FINE, "");
    assert_verdict(
        STORED, "{\"notification_policy\":{\"channels\":{\"sms\":true}}}", TENANT_FINE, "");
    assert_verdict(NULL, "{\"limits\":{\"per_day\":0},\"over_limit\":\"defer\"}", TENANT_FINE, "");
    assert_verdict(NULL, "{\"sender_domains\":[]}", TENANT_FINE, "");
}

static void finding_11_the_operators_fields_do_not_change(void **state)
{
    static const char *const cases[][2] = {
        {"{\"suspended\":true}", "suspended"},
        {"{\"status\":\"deleting\"}", "status"},
        {"{\"region\":\"eu\"}", "region"},
        {"{\"notification_policy\":{\"channels\":{\"sms\":false}}}", "notification_policy"},
        {"{\"limits\":{\"per_minute\":5,\"per_day\":0,\"channels\":{\"sms\":{\"per_day\":1}}}}",
         "limits"},
        {"{\"sender_domains\":[]}", "sender_domains"},
        {"{\"sender_domains\":null}", "sender_domains"},
        {"{\"sender_domains\":[\"acme.test\",\"beta.test\"]}", "sender_domains"},
        {"{\"limits\":{\"per_minute\":6,\"per_day\":0}}", "limits"},
        {"{\"limits\":{}}", "limits"},
        {"{\"limits\":null}", "limits"},
        {"{\"recipient_limits\":{\"per_day\":10}}", "recipient_limits"},
        {"{\"over_limit\":\"defer\"}", "over_limit"},
        {"{\"over_limit\":null}", "over_limit"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_verdict(STORED, cases[i][0], TENANT_OPERATORS, cases[i][1]);
    }
    assert_verdict(NULL, "{\"limits\":{\"per_day\":1}}", TENANT_OPERATORS, "limits");
    assert_verdict(NULL, "{\"sender_domains\":[\"a.test\"]}", TENANT_OPERATORS, "sender_domains");
}

static void finding_11_a_sender_is_of_a_verified_domain(void **state)
{
    (void)state;
    assert_verdict(STORED, "{\"sender_address\":\"news@ACME.test\"}", TENANT_FINE, "");
    assert_verdict(STORED, "{\"sender_address\":\"news@m.acme.test\"}", TENANT_FINE, "");
    assert_verdict(STORED, "{\"sender_address\":\"\"}", TENANT_FINE, "");
    assert_verdict(LEGACY, "{\"sender_address\":\"news@old.test\"}", TENANT_FINE, "");
    static const char *const wrong[] = {
        "{\"sender_address\":\"hello@beta.test\"}", "{\"sender_address\":\"hello@notacme.test\"}",
        "{\"sender_address\":\"hello@acme.test.evil.test\"}",
        "{\"sender_address\":\"hello@\320\260cme.test\"}"}; // a Cyrillic a
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_verdict(STORED, wrong[i], TENANT_UNVERIFIED, "sender_address");
        assert_verdict(LEGACY, wrong[i], TENANT_UNVERIFIED, "sender_address");
        assert_verdict(NULL, wrong[i], TENANT_UNVERIFIED, "sender_address");
    }
    assert_verdict(STORED, "{\"sender_name\":\"ceo@bank.test\"}", TENANT_UNVERIFIED, "sender_name");
    assert_verdict(
        STORED, "{\"sender_name\":\"ceo\\uff20bank.test\"}", TENANT_UNVERIFIED, "sender_name");
    assert_verdict(
        STORED, "{\"sender_name\":\"ceo\\ufe6bbank.test\"}", TENANT_UNVERIFIED, "sender_name");
}

// ---- the operator's ----

typedef enum Deed { DEED_SET, DEED_ADD, DEED_REMOVE } Deed;

// What becomes of the stored settings: the domains, the sender; or why not.
static const char *after(Arena *arena, const char *stored_json, Deed deed, const char *what)
{
    FieldError err = {.field = ""};
    Stentor__V1__Tenant stored;
    Stentor__V1__Tenant wanted;
    bool ok = false;
    if (stored_json != NULL) {
        (void)read_it(stored_json, arena, &stored);
    }
    const Stentor__V1__Tenant *before = stored_json != NULL ? &stored : NULL;
    unsigned named = read_it(deed == DEED_SET ? what : "{}", arena, &wanted);
    if (deed == DEED_SET) {
        ok = tenant_rules_operate(
            before, named, wanted.sender_address[0] != '\0', arena, &wanted, &err);
    } else if (deed == DEED_ADD) {
        ok = tenant_rules_add_domain(before, str_from(what), arena, &wanted, &err);
    } else {
        ok = tenant_rules_remove_domain(before, str_from(what), arena, &wanted, &err);
    }
    const char *text = ok ? "" : arena_printf(arena, "%s: ", err.field);
    for (size_t i = 0; ok && i < wanted.n_sender_domains; i++) {
        text = arena_printf(arena, "%s%s ", text, wanted.sender_domains[i]);
    }
    return arena_printf(arena, "%s%s", text, ok ? wanted.sender_address : err.text);
}

static void the_operators_sender_verifies_its_domain_and_an_old_one_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *stored;
        Deed deed;
        const char *what, *wanted;
    } rows[] = {
        {NULL, DEED_SET, "{\"sender_address\":\"a@b.test\"}", "b.test a@b.test"},
        {NULL, DEED_ADD, "b.test", "b.test "},
        {LEGACY, DEED_SET, "{\"sender_address\":\"a@b.test\"}", "old.test b.test a@b.test"},
        {LEGACY, DEED_ADD, "b.test", "old.test b.test hello@old.test"},
        {LEGACY, DEED_REMOVE, "old.test", ""},
        {STORED, DEED_SET, "{\"sender_address\":\"x@mail.acme.test\"}",
         "acme.test *.acme.test x@mail.acme.test"},
        {STORED, DEED_SET, "{\"sender_domains\":[]}", ""},
        {STORED, DEED_REMOVE, "acme.test", "*.acme.test "},
        {STORED, DEED_REMOVE, "*.acme.test", "acme.test hello@acme.test"},
        {STORED, DEED_REMOVE, "b.test", "domain: tenant 'acme' has no sender domain 'b.test'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new(0);
        assert_string_equal(
            after(arena, rows[i].stored, rows[i].deed, rows[i].what), rows[i].wanted);
        arena_free(arena);
    }
}

static void what_the_operator_does_not_name_of_its_fields_stays(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    FieldError err = {.field = ""};
    Stentor__V1__Tenant stored;
    Stentor__V1__Tenant wanted;
    (void)read_it(STORED, arena, &stored);
    unsigned named = read_it("{\"limits\":{\"per_day\":3},\"suspended\":true}", arena, &wanted);
    assert_true(tenant_rules_operate(&stored, named, false, arena, &wanted, &err));
    assert_true(wanted.suspended);
    assert_int_equal(wanted.tenant_limits->per_day, 3);
    assert_int_equal(wanted.tenant_limits->per_minute, 0);
    assert_ptr_equal(wanted.recipient_limits, stored.recipient_limits);
    assert_int_equal(wanted.over_limit, stored.over_limit);
    assert_int_equal(wanted.n_sender_domains, 2);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_11_the_operators_fields_are_kept_and_may_be_repeated),
        cmocka_unit_test(finding_11_the_operators_fields_do_not_change),
        cmocka_unit_test(the_operators_sender_verifies_its_domain_and_an_old_one_is_kept),
        cmocka_unit_test(what_the_operator_does_not_name_of_its_fields_stays),
        cmocka_unit_test(finding_11_a_sender_is_of_a_verified_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
