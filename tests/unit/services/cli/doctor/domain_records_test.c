// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/cli/doctor/domain_records.h"

static void only_a_record_of_version_one_is_spf(void **state)
{
    (void)state;
    assert_true(spf_is_record(STR("v=spf1 -all")));
    assert_true(spf_is_record(STR("V=SPF1 -all")));
    assert_true(spf_is_record(STR("v=spf1")));
    assert_false(spf_is_record(STR("v=spf10 -all")));
    assert_false(spf_is_record(STR("spf2.0/pra -all")));
    assert_false(spf_is_record(STR_EMPTY));
}

static void each_term_has_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char qualifier;
        SpfName name;
        const char *value;
        int bits4, bits6;
    } rows[] = {
        {"a", '+', SPF_A, "", 32, 128},
        {"-all", '-', SPF_ALL, "", 32, 128},
        {"~include:_spf.example.com", '~', SPF_INCLUDE, "_spf.example.com", 32, 128},
        {"?ip4:192.0.2.0/24", '?', SPF_IP4, "192.0.2.0", 24, 128},
        {"ip6:2001:db8::/32", '+', SPF_IP6, "2001:db8::", 32, 32},
        {"mx/28", '+', SPF_MX, "", 28, 128},
        {"a:host.example//64", '+', SPF_A, "host.example", 32, 64},
        {"mx:example.com/24//56", '+', SPF_MX, "example.com", 24, 56},
        {"redirect=other.example", '+', SPF_REDIRECT, "other.example", 32, 128},
        {"exp=why.example", '+', SPF_OTHER, "why.example", 32, 128},
        {"ip4:192.0.2.0/99", '+', SPF_IP4, "192.0.2.0", 32, 128},
        {"lp4:192.0.2.0", '+', SPF_UNKNOWN, "192.0.2.0", 32, 128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Str rest = str_from(rows[i].text);
        SpfTerm term;
        assert_true(spf_next(&rest, &term));
        assert_int_equal(term.qualifier, rows[i].qualifier);
        assert_int_equal(term.name, rows[i].name);
        assert_true(str_eq(term.value, str_from(rows[i].value)));
        assert_int_equal(term.bits4, rows[i].bits4);
        assert_int_equal(term.bits6, rows[i].bits6);
        assert_false(spf_next(&rest, &term));
    }
    Str rest = STR("  a   mx  ");
    SpfTerm term;
    assert_true(spf_next(&rest, &term) && term.name == SPF_A);
    assert_true(spf_next(&rest, &term) && term.name == SPF_MX);
    assert_false(spf_next(&rest, &term));
}

static void a_network_has_its_addresses(void **state)
{
    (void)state;
    assert_true(spf_network_has(STR("192.0.2.0"), 24, 128, "192.0.2.77"));
    assert_false(spf_network_has(STR("192.0.2.0"), 24, 128, "192.0.3.1"));
    assert_true(spf_network_has(STR("192.0.2.128"), 25, 128, "192.0.2.129"));
    assert_false(spf_network_has(STR("192.0.2.128"), 25, 128, "192.0.2.1"));
    assert_true(spf_network_has(STR("10.0.0.0"), 0, 128, "192.0.2.1"));
    assert_true(spf_network_has(STR("2001:db8::"), 32, 32, "2001:db8::1"));
    assert_false(spf_network_has(STR("2001:db8::"), 32, 128, "2001:db8::1"));
    assert_false(spf_network_has(STR("2001:db8::"), 32, 32, "192.0.2.1"));
    assert_false(spf_network_has(STR("nonsense"), 32, 32, "192.0.2.1"));
}

// The key of RFC 8463, appendix A.
#define ED25519_PUBLIC "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
#define ED25519_PEM                                                                                \
    "-----BEGIN PRIVATE KEY-----\n"                                                                \
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"                           \
    "-----END PRIVATE KEY-----\n"

static void a_dkim_record_is_read_and_compared_with_the_private_key(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    DkimRecord record;
    Error err = {0};
    Str ours = STR_EMPTY;
    assert_true(dkim_record_read(
        STR("v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7T yWQHOg7hcvPapiMlrwIaaPcHURo="), arena, &record,
        &err));
    assert_true(record.ed25519);
    assert_false(record.testing);
    assert_true(dkim_public_of(STR(ED25519_PEM), arena, &ours, &err));
    assert_true(str_eq(ours, STR(ED25519_PUBLIC)));
    assert_true(str_eq(record.key, ours));
    assert_false(dkim_public_of(STR("no key"), arena, &ours, &err));
    assert_true(dkim_record_read(
        STR("v=DKIM1; t=y:s; k=ed25519; p=" ED25519_PUBLIC), arena, &record, &err));
    assert_true(record.testing);
    arena_free(arena);
}

static void a_broken_dkim_record_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *because;
    } rows[] = {
        {"v=DKIM2; p=x", "v="},
        {"v=DKIM1; k=rsa", "no p="},
        {"v=DKIM1; p=", "revoked"},
        {"v=DKIM1; p=AAAA", "RSA key"},
        {"", "no p="},
        {"v=DKIM1; p=!!!!", "RSA key"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        DkimRecord record;
        Error err = {0};
        assert_false(dkim_record_read(str_from(rows[i].text), arena, &record, &err));
        assert_non_null(strstr(err.text, rows[i].because));
    }
    arena_free(arena);
}

static void a_parent_is_asked_while_it_is_a_domain(void **state)
{
    (void)state;
    assert_true(str_eq(domain_parent(STR("mail.shop.example")), STR("shop.example")));
    assert_int_equal(domain_parent(STR("shop.example")).len, 0);
    assert_int_equal(domain_parent(STR("localhost")).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_record_of_version_one_is_spf),
        cmocka_unit_test(each_term_has_its_parts),
        cmocka_unit_test(a_network_has_its_addresses),
        cmocka_unit_test(a_dkim_record_is_read_and_compared_with_the_private_key),
        cmocka_unit_test(a_broken_dkim_record_is_named),
        cmocka_unit_test(a_parent_is_asked_while_it_is_a_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
