// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/config/mail_domain_entry.h"

static Str packed(const char *tenant, const char *domain, Arena *arena)
{
    Stentor__V1__MailDomain entry;
    Str payload = STR_EMPTY;
    stentor__v1__mail_domain__init(&entry);
    entry.tenant = pb_borrow(tenant);
    entry.domain = pb_borrow(domain);
    assert_true(event_pack(&entry.base, arena, &payload, NULL));
    return payload;
}

static void a_name_is_in_lower_case_and_has_the_tenant(void **state)
{
    (void)state;
    char out[MAIL_DOMAIN_NAME_SIZE];
    char longest[MAIL_DOMAIN_NAME_SIZE];
    Str name = mail_domain_name(out, STR("acme"), STR("Shop.Example"));
    assert_true(str_eq(name, STR("acme/shop.example")));
    memset(longest, 'a', sizeof longest);
    name = mail_domain_name(out, STR("acme"), str_of(longest, sizeof out - 6));
    assert_int_equal(name.len, sizeof out - 1);
    assert_int_equal(mail_domain_name(out, STR("acme"), str_of(longest, sizeof out - 5)).len, 0);
}

static void an_entry_is_its_tenants(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Error err = {0};
    Str payload = packed("acme", "shop.example", arena);
    const Stentor__V1__MailDomain *entry = mail_domain_read(STR("acme"), payload, arena, &err);
    assert_non_null(entry);
    assert_string_equal(entry->domain, "shop.example");
    assert_null(mail_domain_read(STR("globex"), payload, arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, "the entry's tenant is not the subject's");
    arena_free(arena);
}

static void what_is_no_entry_is_refused(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Error err = {0};
    assert_null(mail_domain_read(STR("acme"), STR("\xff\xff"), arena, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_null(mail_domain_read(STR("acme"), packed("acme", "", arena), arena, &err));
    assert_string_equal(err.text, "'domain' is empty or too long");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_in_lower_case_and_has_the_tenant),
        cmocka_unit_test(an_entry_is_its_tenants),
        cmocka_unit_test(what_is_no_entry_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
