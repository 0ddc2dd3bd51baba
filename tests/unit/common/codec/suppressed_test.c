// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/codec/hash.h"
#include "common/codec/suppressed.h"

#define NOW_US INT64_C(1790000000000000)
static const Str CURRENT = {"0123456789abcdef0123456789abcdef", 32};
static const Str OLD = {"fedcba9876543210fedcba9876543210", 32};

static SuppressionReason look(const Suppressions *known, size_t keys, Str address)
{
    HashKeys all = {.keys = {CURRENT, OLD}, .count = keys};
    return suppressed_under_any(
        known, &all, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, address, NOW_US);
}

static void put(
    Suppressions *known, Str key, const char *tenant, const char *address, SuppressionReason reason)
{
    uint8_t hash[ADDRESS_HASH_LEN];
    address_hash(key, str_from(tenant), CHANNEL_EMAIL, str_from(address), hash);
    suppressions_put(known, str_from(tenant), CHANNEL_EMAIL, (Category)0, hash, reason, 0);
}

static void an_entry_under_either_key_of_either_list_is_found(void **state)
{
    (void)state;
    Suppressions *known = suppressions_new();
    put(known, OLD, "acme", "old@example.com", SUPPRESSION_COMPLAINT);
    put(known, CURRENT, "acme", "new@example.com", SUPPRESSION_HARD_BOUNCE);
    put(known, OLD, "platform", "spam@example.com", SUPPRESSION_COMPLIANCE);
    put(known, OLD, "other", "other@example.com", SUPPRESSION_COMPLAINT);
    assert_int_equal(look(known, 2, STR("old@example.com")), SUPPRESSION_COMPLAINT);
    assert_int_equal(look(known, 2, STR("new@example.com")), SUPPRESSION_HARD_BOUNCE);
    assert_int_equal(look(known, 2, STR("spam@example.com")), SUPPRESSION_COMPLIANCE);
    assert_int_equal(look(known, 2, STR("other@example.com")), SUPPRESSION_NONE);
    assert_int_equal(look(known, 2, STR_EMPTY), SUPPRESSION_NONE);
    assert_int_equal(
        look(known, 1, STR("new@example.com")),
        SUPPRESSION_NONE); // asked before, by the hash at hand
    suppressions_free(known);
}

// ---- pauses by guard rails ----

static Suppressions *pauses;

static int begin(void **state)
{
    (void)state;
    pauses = suppressions_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    suppressions_free(pauses);
    return 0;
}

static void pause_mails(const char *domain, const char *provider)
{
    uint8_t hash[SUPPRESSION_HASH_LEN];
    mail_scope_hash(str_from(domain), str_from(provider), hash);
    suppressions_put(
        pauses, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, hash, SUPPRESSION_RATE_LIMIT, 0);
}

static bool is_paused(const char *tenant, Category category, const char *domain, const char *to)
{
    return mail_scope_suppressed(
               pauses, str_from(tenant), CHANNEL_EMAIL, category, str_from(domain), str_from(to),
               NOW_US) == SUPPRESSION_RATE_LIMIT;
}

static void a_pause_concerns_its_domain_and_provider_alone(void **state)
{
    (void)state;
    pause_mails("acme.test", "gmail.com");
    assert_true(is_paused("acme", CATEGORY_MARKETING, "acme.test", "ada@gmail.com"));
    assert_true(is_paused("acme", CATEGORY_MARKETING, "ACME.test", "ada@googlemail.com"));
    assert_false(is_paused("acme", CATEGORY_MARKETING, "acme.test", "ada@outlook.com"));
    assert_false(is_paused("acme", CATEGORY_MARKETING, "acme.test", ""));
    assert_false(is_paused("acme", CATEGORY_MARKETING, "news.acme.test", "ada@gmail.com"));
    assert_false(is_paused("acme", CATEGORY_MARKETING, "", "ada@gmail.com"));
    assert_false(is_paused("acme", CATEGORY_TRANSACTIONAL, "acme.test", "ada@gmail.com"));
    assert_false(is_paused("beta", CATEGORY_MARKETING, "acme.test", "ada@gmail.com"));
}

static void a_pause_of_a_domain_concerns_every_provider(void **state)
{
    (void)state;
    pause_mails("acme.test", "");
    assert_true(is_paused("acme", CATEGORY_MARKETING, "acme.test", "ada@gmail.com"));
    assert_true(is_paused("acme", CATEGORY_MARKETING, "acme.test", "ada@lovelace.example"));
    assert_true(is_paused("acme", CATEGORY_MARKETING, "acme.test", ""));
    assert_false(is_paused("acme", CATEGORY_MARKETING, "other.test", "ada@gmail.com"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pause_concerns_its_domain_and_provider_alone, begin, end),
        cmocka_unit_test_setup_teardown(a_pause_of_a_domain_concerns_every_provider, begin, end),
        cmocka_unit_test(an_entry_under_either_key_of_either_list_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
