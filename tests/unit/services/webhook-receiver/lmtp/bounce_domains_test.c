// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "services/webhook-receiver/lmtp/mail_intake.h"
#include "stentor/v1/config.pb-c.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define NTF "ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"
#define AT_US INT64_C(1795694400000000)

static Arena *arena;
static BounceDomains *domains;
static MailIntake intake;

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    arena = arena_new(0);
    domains = bounce_domains_new();
    MasterKey *master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    intake = (MailIntake){.domains = domains};
    bounce_key(master, &intake.bounce);
    opt_out_key(master, &intake.opt_out);
    master_key_free(master);
    return 0;
}

static int end(void **state)
{
    (void)state;
    bounce_domains_free(domains);
    arena_free(arena);
    return 0;
}

static void put(const char *tenant, const char *domain, const char *bounce_domain)
{
    Error err = {0};
    Str payload = STR_EMPTY;
    if (bounce_domain != NULL) {
        Stentor__V1__MailDomain entry;
        stentor__v1__mail_domain__init(&entry);
        entry.tenant = arena_cstr(arena, str_from(tenant));
        entry.domain = arena_cstr(arena, str_from(domain));
        entry.bounce_domain = arena_cstr(arena, str_from(bounce_domain));
        assert_true(event_pack(&entry.base, arena, &payload, &err));
    }
    assert_true(bounce_domains_changed(domains, str_from(tenant), str_from(domain), payload, &err));
}

static void a_domain_counts_while_an_entry_names_it(void **state)
{
    (void)state;
    assert_false(bounce_domains_has(domains, STR("bounce.acme.test")));
    put("acme", "acme.test", "Bounce.Acme.test");
    put("acme", "other.test", "bounce.acme.test");
    put("acme", "third.test", "");
    assert_true(bounce_domains_has(domains, STR("bounce.ACME.test")));
    assert_false(bounce_domains_has(domains, STR("acme.test")));
    assert_false(bounce_domains_has(domains, STR_EMPTY));
    put("acme", "acme.test", NULL);
    assert_true(bounce_domains_has(domains, STR("bounce.acme.test")));
    put("acme", "other.test", "");
    assert_false(bounce_domains_has(domains, STR("bounce.acme.test")));
}

static void a_domain_of_several_tenants_has_no_sole_one(void **state)
{
    (void)state;
    put("acme", "acme.test", "bounce.test");
    put("acme", "acme.example", "bounce.test");
    assert_true(str_eq(bounce_domains_sole_tenant(domains, STR("bounce.test")), STR("acme")));
    put("globex", "globex.test", "bounce.test");
    assert_int_equal(bounce_domains_sole_tenant(domains, STR("bounce.test")).len, 0);
    put("globex", "globex.test", NULL);
    assert_true(str_eq(bounce_domains_sole_tenant(domains, STR("bounce.test")), STR("acme")));
    assert_int_equal(bounce_domains_sole_tenant(domains, STR("x.test")).len, 0);
    put("platform", "all.test", "b.all.test"); // any tenant's mail may have it
    assert_true(bounce_domains_has(domains, STR("b.all.test")));
    assert_int_equal(bounce_domains_sole_tenant(domains, STR("b.all.test")).len, 0);
}

static void an_unreadable_entry_is_refused(void **state)
{
    (void)state;
    Error err = {0};
    assert_false(
        bounce_domains_changed(domains, STR("acme"), STR("a.test"), STR("\xff\xff"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

static Str token_of(const char *tenant)
{
    Error err = {0};
    uint8_t hash[ADDRESS_HASH_LEN] = {1, 2, 3};
    char out[BOUNCE_ADDRESS_SIZE];
    assert_true(bounce_address_make_for(
        &intake.bounce, str_from(tenant), STR(NTF), 1, hash, STR("bounce.test"), out, &err));
    return arena_str(arena, str_from(out));
}

static Str owner_of(Str address)
{
    BounceToken token;
    assert_true(bounce_address_read(address, &token, NULL));
    return bounce_domains_tenant_of(domains, &intake.bounce, &token);
}

static void a_token_is_its_tenants_while_there_is_one(void **state)
{
    (void)state;
    assert_int_equal(owner_of(token_of("acme")).len, 0);
    bounce_domains_tenant_changed(domains, STR("acme"), STR("x"));
    bounce_domains_tenant_changed(domains, STR("globex"), STR("x"));
    bounce_domains_tenant_changed(domains, STR("acme"), STR("y"));
    assert_true(str_eq(owner_of(token_of("acme")), STR("acme")));
    assert_true(str_eq(owner_of(token_of("globex")), STR("globex")));
    char *altered = arena_cstr(arena, token_of("acme"));
    altered[50] = altered[50] == '0' ? '1' : '0';
    assert_int_equal(owner_of(str_from(altered)).len, 0);
    bounce_domains_tenant_changed(domains, STR("acme"), STR_EMPTY);
    assert_int_equal(owner_of(token_of("acme")).len, 0);
}

static Str find(const char *text)
{
    return mail_intake_tenant_of(&intake, str_from(text), AT_US, arena);
}

static void a_report_is_of_the_tenant_whose_token_stands_in_it(void **state)
{
    (void)state;
    bounce_domains_tenant_changed(domains, STR("acme"), STR("x"));
    char *path = arena_cstr(arena, token_of("acme"));
    assert_true(
        str_eq(find(arena_printf(arena, "@ a@b Return-Path: <%s>\r\n", path)), STR("acme")));
    assert_true(str_eq(find(path), STR("acme")));
    assert_int_equal(
        find(arena_printf(arena, "<%s>", arena_cstr(arena, token_of("globex")))).len, 0);
    char token[OPT_OUT_TOKEN_SIZE];
    Error err = {0};
    OptOut what = {
        .tenant = STR("globex"),
        .notification_id = STR(NTF),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .issued_at_us = AT_US};
    assert_true(opt_out_sign(&intake.opt_out, &what, token, &err));
    assert_true(str_eq(
        find(arena_printf(arena, "oot_ oot_x List-Unsubscribe: <https://x/%s>", token)),
        STR("globex")));
    token[60] = token[60] == 'A' ? 'B' : 'A';
    assert_int_equal(find(token).len, 0);
    assert_int_equal(find("").len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_domain_counts_while_an_entry_names_it, begin, end),
        cmocka_unit_test_setup_teardown(a_domain_of_several_tenants_has_no_sole_one, begin, end),
        cmocka_unit_test_setup_teardown(an_unreadable_entry_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_token_is_its_tenants_while_there_is_one, begin, end),
        cmocka_unit_test_setup_teardown(
            a_report_is_of_the_tenant_whose_token_stands_in_it, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
