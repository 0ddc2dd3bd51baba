// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/sender_domain.h"

static bool may(const char *domain, const char *own, const char *address)
{
    Arena *arena = arena_new(0);
    char *domains[] = {arena_cstr(arena, str_from(domain))};
    SenderRule rule = {domains, domain != NULL ? 1 : 0, str_from(own)};
    bool ok = sender_may_use(&rule, str_from(address));
    arena_free(arena);
    return ok;
}

static void finding_11_a_verified_domain_is_itself_and_nothing_that_looks_like_it(void **state)
{
    (void)state;
    assert_true(may("acme.test", "", "hello@acme.test"));
    assert_true(may("acme.test", "", "Hello@ACME.Test"));
    static const char *const others[] = {
        "hello@beta.test",
        "hello@mail.acme.test",
        "hello@notacme.test",
        "hello@acme.test.evil",
        "hello@acme.tes",
        "hello@acme.test.",
        "hello@acme.test@evil",
        "acme.test",
        "",
        "hello@",
        "hello@xn--acme-9cd.test",
        "hello@\320\260cme.test", // a Cyrillic a
        "hello@evil.test <x",
        "hello@acme.test\r\nBcc: x@y"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (may("acme.test", "", others[i])) {
            fail_msg("may use '%s'", others[i]);
        }
    }
}

static void a_star_is_every_domain_below_and_not_the_one_itself(void **state)
{
    (void)state;
    assert_true(may("*.acme.test", "", "hello@mail.acme.test"));
    assert_true(may("*.acme.test", "", "hello@a.b.ACME.test"));
    assert_false(may("*.acme.test", "", "hello@acme.test"));
    assert_false(may("*.acme.test", "", "hello@notacme.test"));
    assert_false(may("*.acme.test", "", "hello@.acme.test.evil"));
}

static void finding_11_without_domains_only_that_of_the_stored_sender_counts(void **state)
{
    (void)state;
    assert_true(may(NULL, "old@acme.test", "new@acme.test"));
    assert_false(may(NULL, "old@acme.test", "new@beta.test"));
    assert_false(may(NULL, "", "new@beta.test"));
    assert_false(may("beta.test", "old@acme.test", "new@acme.test"));
}

static void assert_parsed(const char *text, const char *wanted)
{
    Arena *arena = arena_new(0);
    Str domain = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE] = "";
    bool ok = sender_domain_parse(str_from(text), arena, &domain, reason);
    if (ok != (wanted != NULL) || (ok && !str_eq(domain, str_from(wanted))) ||
        (!ok && reason[0] == '\0')) {
        fail_msg("'%s': %d '%.*s' '%s'", text, ok, STR_ARG(domain), reason);
    }
    arena_free(arena);
}

static void a_domain_is_stored_in_lower_case_as_a_labels(void **state)
{
    (void)state;
    assert_parsed("Acme.TEST", "acme.test");
    assert_parsed("*.Acme.test", "*.acme.test");
    assert_parsed("m\xc3\xbcnchen.test", "xn--mnchen-3ya.test");
    static const char *const bad[] = {
        "",           "*",          "*.",       "acme",      "a@acme.test", "acme..test",
        ".acme.test", "acme.test.", "*.*.test", "acme test", "acme.test\n", "-a.test",
        "\xff.test",  "xn--a.test"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_parsed(bad[i], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_11_a_verified_domain_is_itself_and_nothing_that_looks_like_it),
        cmocka_unit_test(a_star_is_every_domain_below_and_not_the_one_itself),
        cmocka_unit_test(finding_11_without_domains_only_that_of_the_stored_sender_counts),
        cmocka_unit_test(a_domain_is_stored_in_lower_case_as_a_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
