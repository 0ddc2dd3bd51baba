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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_under_either_key_of_either_list_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
