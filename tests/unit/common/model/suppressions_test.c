// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/model/suppressions.h"

typedef struct Hash {
    uint8_t of[SUPPRESSION_HASH_LEN];
} Hash;

static Hash hash_of(uint64_t first, uint64_t second)
{
    Hash hash = {{0}};
    memcpy(hash.of, &first, sizeof first);
    memcpy(hash.of + sizeof first, &second, sizeof second);
    return hash;
}

static SuppressionReason find(const Suppressions *s, Category category, Hash hash, int64_t now_us)
{
    return suppressions_find(s, STR("acme"), CHANNEL_EMAIL, category, hash.of, now_us);
}

static void put(
    Suppressions *s, Category category, Hash hash, SuppressionReason reason, int64_t expires)
{
    suppressions_put(s, STR("acme"), CHANNEL_EMAIL, category, hash.of, reason, expires);
}

static void an_entry_holds_for_its_key_only(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(1, 2);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 0), SUPPRESSION_NONE);
    put(s, CATEGORY_MARKETING, hash, SUPPRESSION_OPT_OUT, 0);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 0), SUPPRESSION_OPT_OUT);
    assert_int_equal(find(s, CATEGORY_SOCIAL, hash, 0), SUPPRESSION_NONE);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash_of(1, 3), 0), SUPPRESSION_NONE);
    assert_int_equal(
        suppressions_find(s, STR("other"), CHANNEL_EMAIL, CATEGORY_MARKETING, hash.of, 0),
        SUPPRESSION_NONE);
    assert_int_equal(
        suppressions_find(s, STR("acme"), CHANNEL_SMS, CATEGORY_MARKETING, hash.of, 0),
        SUPPRESSION_NONE);
    suppressions_free(s);
}

static void an_entry_without_category_holds_for_all(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(7, 7);
    put(s, CATEGORY_NONE, hash, SUPPRESSION_MANUAL, 0);
    for (Category category = CATEGORY_NONE; category < CATEGORY_COUNT; category++) {
        assert_int_equal(find(s, category, hash, 0), SUPPRESSION_MANUAL);
    }
    suppressions_free(s);
}

static void a_fact_wins_over_an_opt_out_whatever_their_order(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        Suppressions *s = suppressions_new();
        Hash hash = hash_of(9, 9);
        Category first = order == 0 ? CATEGORY_NONE : CATEGORY_MARKETING;
        Category second = order == 0 ? CATEGORY_MARKETING : CATEGORY_NONE;
        put(s, first, hash, SUPPRESSION_OPT_OUT, 0);
        put(s, second, hash, SUPPRESSION_HARD_BOUNCE, 0);
        assert_int_equal(find(s, CATEGORY_MARKETING, hash, 0), SUPPRESSION_HARD_BOUNCE);
        suppressions_free(s);
    }
}

static void it_ends_at_its_expiry(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(3, 1);
    put(s, CATEGORY_NONE, hash, SUPPRESSION_RATE_LIMIT, 1000);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 999), SUPPRESSION_RATE_LIMIT);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 1000), SUPPRESSION_NONE);
    suppressions_free(s);
}

static void a_later_entry_replaces_the_one_before(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(3, 1);
    put(s, CATEGORY_NONE, hash, SUPPRESSION_MANUAL, 0);
    put(s, CATEGORY_NONE, hash, SUPPRESSION_COMPLAINT, 0);
    assert_int_equal(suppressions_count(s), 1);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 0), SUPPRESSION_COMPLAINT);
    put(s, CATEGORY_NONE, hash, SUPPRESSION_NONE, 0);
    assert_int_equal(suppressions_count(s), 0);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 0), SUPPRESSION_NONE);
    suppressions_free(s);
}

static void the_platform_is_counted_and_judged(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash ours = hash_of(1, 1), theirs = hash_of(2, 2);
    assert_int_equal(suppressions_count_of_platform(s), 0);
    suppressions_put(
        s, STR("platform"), CHANNEL_EMAIL, CATEGORY_NONE, theirs.of, SUPPRESSION_COMPLIANCE, 0);
    assert_int_equal(suppressions_count_of_platform(s), 1);
    assert_int_equal(
        suppressions_classify(
            s, STR("acme"), CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL, ours.of, theirs.of, 0),
        SUPPRESSION_COMPLIANCE);
    assert_int_equal(
        suppressions_classify(
            s, STR("acme"), CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL, ours.of, NULL, 0),
        SUPPRESSION_NONE);
    suppressions_free(s);
}

static void transactional_mails_ignore_only_an_opt_out(void **state)
{
    (void)state;
    for (SuppressionReason reason = SUPPRESSION_NONE + 1; reason < SUPPRESSION_COUNT; reason++) {
        for (Category category = CATEGORY_NONE + 1; category < CATEGORY_COUNT; category++) {
            Suppressions *s = suppressions_new();
            Hash hash = hash_of(5, 6);
            put(s, CATEGORY_NONE, hash, reason, 0);
            bool must_reach = category == CATEGORY_TRANSACTIONAL || category == CATEGORY_SECURITY ||
                              category == CATEGORY_COMPLIANCE;
            SuppressionReason expected =
                must_reach && reason == SUPPRESSION_OPT_OUT ? SUPPRESSION_NONE : reason;
            assert_int_equal(
                suppressions_classify(s, STR("acme"), CHANNEL_EMAIL, category, hash.of, NULL, 0),
                expected);
            suppressions_free(s);
        }
    }
}

static void an_entry_about_every_address_holds_for_its_category(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(1, 2);
    suppressions_put(
        s, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, SUPPRESSION_EVERY_ADDRESS,
        SUPPRESSION_RATE_LIMIT, 0);
    static const struct {
        const char *tenant;
        Channel channel;
        Category category;
        SuppressionReason reason;
    } rows[] = {
        {"acme", CHANNEL_EMAIL, CATEGORY_MARKETING, SUPPRESSION_RATE_LIMIT},
        {"acme", CHANNEL_EMAIL, CATEGORY_TRANSACTIONAL, SUPPRESSION_NONE},
        {"acme", CHANNEL_SMS, CATEGORY_MARKETING, SUPPRESSION_NONE},
        {"beta", CHANNEL_EMAIL, CATEGORY_MARKETING, SUPPRESSION_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            suppressions_classify(
                s, str_from(rows[i].tenant), rows[i].channel, rows[i].category, hash.of, NULL, 0),
            rows[i].reason);
    }
    put(s, CATEGORY_MARKETING, hash, SUPPRESSION_COMPLAINT, 0);
    assert_int_equal(
        suppressions_classify(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, hash.of, NULL, 0),
        SUPPRESSION_COMPLAINT); // its own says more
    suppressions_free(s);
}

static bool wants(const Suppressions *s, Hash hash, SuppressionReason reason, int64_t at_us)
{
    return suppressions_wants(
        s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash.of, reason, at_us, 0);
}

static void a_released_address_is_suppressed_again_only_by_something_newer(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(8, 8);
    assert_true(wants(s, hash, SUPPRESSION_HARD_BOUNCE, 100));
    SuppressionEntry released = {.reason = SUPPRESSION_NONE, .changed_at_us = 200};
    suppressions_note(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash.of, &released);
    assert_int_equal(suppressions_count(s), 0);
    assert_int_equal(find(s, CATEGORY_MARKETING, hash, 300), SUPPRESSION_NONE);
    assert_false(wants(s, hash, SUPPRESSION_HARD_BOUNCE, 100));
    assert_false(wants(s, hash, SUPPRESSION_HARD_BOUNCE, 200));
    assert_true(wants(s, hash, SUPPRESSION_HARD_BOUNCE, 201));
    suppressions_free(s);
}

static void what_made_a_released_entry_does_not_make_it_again(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(8, 8);
    SuppressionEntry released = {
        .reason = SUPPRESSION_NONE, .changed_at_us = 200, .cause = UINT64_MAX - 6};
    suppressions_note(s, STR("acme"), CHANNEL_SMS, CATEGORY_NONE, hash.of, &released);
    static const struct {
        int64_t at_us;
        uint64_t cause;
        bool wanted;
    } rows[] = {{300, UINT64_MAX - 6, false}, {300, 7, true}, {300, 0, true}, {100, 7, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            suppressions_wants(
                s, STR("acme"), CHANNEL_SMS, CATEGORY_NONE, hash.of, SUPPRESSION_OPT_OUT,
                rows[i].at_us, rows[i].cause),
            rows[i].wanted);
    }
    released.reason = SUPPRESSION_OPT_OUT; // in force again: `expires_at_us` is one again
    suppressions_note(s, STR("acme"), CHANNEL_SMS, CATEGORY_NONE, hash.of, &released);
    assert_int_equal(
        suppressions_find(s, STR("acme"), CHANNEL_SMS, CATEGORY_SOCIAL, hash.of, 1000),
        SUPPRESSION_OPT_OUT);
    suppressions_free(s);
}

static void a_repeat_and_a_weaker_reason_are_not_wanted(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash bounced = hash_of(8, 8), opted = hash_of(8, 9), expiring = hash_of(8, 10);
    put(s, CATEGORY_NONE, bounced, SUPPRESSION_HARD_BOUNCE, 0);
    put(s, CATEGORY_NONE, opted, SUPPRESSION_OPT_OUT, 0);
    put(s, CATEGORY_NONE, expiring, SUPPRESSION_MANUAL, 1000);
    assert_false(wants(s, bounced, SUPPRESSION_HARD_BOUNCE, 5));
    assert_false(wants(s, bounced, SUPPRESSION_OPT_OUT, 5));
    assert_false(wants(s, opted, SUPPRESSION_OPT_OUT, 5));
    assert_true(wants(s, opted, SUPPRESSION_COMPLAINT, 5));
    assert_true(wants(s, expiring, SUPPRESSION_OPT_OUT, 5));
    suppressions_free(s);
}

// Who may release a manual entry may not release a complaint, so that one must not be hidden.
static void finding_02_a_complaint_replaces_what_is_released_more_easily(void **state)
{
    (void)state;
    for (SuppressionReason there = SUPPRESSION_NONE + 1; there < SUPPRESSION_COUNT; there++) {
        Suppressions *s = suppressions_new();
        Hash hash = hash_of(8, 8);
        put(s, CATEGORY_NONE, hash, there, 0);
        bool guarded = there == SUPPRESSION_COMPLAINT || there == SUPPRESSION_COMPLIANCE;
        assert_int_equal(wants(s, hash, SUPPRESSION_COMPLAINT, 5), !guarded);
        assert_int_equal(wants(s, hash, SUPPRESSION_OPT_OUT, 5), false);
        assert_int_equal(
            wants(s, hash, SUPPRESSION_HARD_BOUNCE, 5),
            there == SUPPRESSION_OPT_OUT || there == SUPPRESSION_UNREADABLE);
        suppressions_free(s);
    }
}

static void each_entry_knows_its_message(void **state)
{
    (void)state;
    Suppressions *s = suppressions_new();
    Hash hash = hash_of(8, 8);
    uint64_t sequence = UINT64_C(0xfedcba98765); // more than 32 bits
    SuppressionEntry entry = {.reason = SUPPRESSION_MANUAL, .sequence = sequence};
    assert_int_equal(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash.of), 0);
    suppressions_note(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash.of, &entry);
    for (uint64_t i = 0; i < 100; i++) { // and keeps it when its table grows
        put(s, CATEGORY_NONE, hash_of(i, 9), SUPPRESSION_MANUAL, 0);
    }
    assert_true(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, hash.of) == sequence);
    assert_int_equal(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_SOCIAL, hash.of), 0);
    suppressions_free(s);
}

typedef struct Place {
    Suppressions *known;
    Hash hash;
} Place;

static uint64_t readable(const Place *at)
{
    return suppressions_readable(at->known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, at->hash.of);
}

static bool stands(const Place *at, SuppressionReason reason, int64_t expires_at_us)
{
    return suppressions_stands(
        at->known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, at->hash.of, reason, expires_at_us);
}

static void note(const Place *at, SuppressionReason reason, int64_t expires, uint64_t sequence)
{
    SuppressionEntry entry = {.reason = reason, .expires_at_us = expires, .sequence = sequence};
    suppressions_note(at->known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, at->hash.of, &entry);
}

static void spoil(const Place *at, uint64_t sequence)
{
    suppressions_note_unreadable(
        at->known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, at->hash.of, sequence);
}

static void what_is_known_is_the_last_that_can_be_read(void **state)
{
    (void)state;
    Place at = {suppressions_new(), hash_of(8, 8)};
    assert_int_equal(readable(&at), 0);
    note(&at, SUPPRESSION_MANUAL, 0, 7);
    assert_int_equal(readable(&at), 7);
    spoil(&at, 8);
    spoil(&at, 9);
    assert_int_equal(readable(&at), 7);
    assert_int_equal(
        suppressions_sequence(at.known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, at.hash.of), 9);
    assert_int_equal(
        suppressions_readable(at.known, STR("acme"), CHANNEL_EMAIL, CATEGORY_SOCIAL, at.hash.of),
        0);
    note(&at, SUPPRESSION_COMPLAINT, 0, 10);
    assert_int_equal(readable(&at), 10);
    Place nothing = {at.known, hash_of(8, 9)};
    spoil(&nothing, 11);
    assert_int_equal(readable(&nothing), 0);
    suppressions_free(at.known);
}

static void only_the_same_reason_and_end_stand_already(void **state)
{
    (void)state;
    Place at = {suppressions_new(), hash_of(8, 8)};
    assert_false(stands(&at, SUPPRESSION_MANUAL, 0));
    note(&at, SUPPRESSION_MANUAL, 1000, 7);
    assert_true(stands(&at, SUPPRESSION_MANUAL, 1000));
    assert_false(stands(&at, SUPPRESSION_MANUAL, 0));
    assert_false(stands(&at, SUPPRESSION_COMPLAINT, 1000));
    spoil(&at, 8); // what came later cannot be read, and a readable one mends it
    assert_false(stands(&at, SUPPRESSION_MANUAL, 1000));
    note(&at, SUPPRESSION_NONE, 1000, 9); // released
    assert_false(stands(&at, SUPPRESSION_MANUAL, 1000));
    Place nothing = {at.known, hash_of(8, 9)};
    spoil(&nothing, 10);
    assert_false(stands(&nothing, SUPPRESSION_UNREADABLE, 0));
    suppressions_free(at.known);
}

// Against a plain array, over keys that crowd in few homes.
static void random_changes_agree_with_a_list(void **state)
{
    (void)state;
    enum { KEYS = 64, STEPS = 20000 };
    uint8_t expected[KEYS] = {0};
    Suppressions *s = suppressions_new();
    unsigned random = 12345;
    for (int step = 0; step < STEPS; step++) {
        random = random * 1103515245U + 12345U;
        unsigned key = (random >> 16) % KEYS;
        Hash hash = hash_of(key % 5, key / 10);
        Category category = key / 5 % 2 == 0 ? CATEGORY_SOCIAL : CATEGORY_BILLING;
        if (random >> 31 == 0) {
            put(s, category, hash, SUPPRESSION_MANUAL, 0);
            expected[key] = 1;
        } else {
            put(s, category, hash, SUPPRESSION_NONE, 0); // released
            expected[key] = 0;
        }
        size_t count = 0;
        for (unsigned i = 0; i < KEYS; i++) {
            Category of = i / 5 % 2 == 0 ? CATEGORY_SOCIAL : CATEGORY_BILLING;
            bool there = find(s, of, hash_of(i % 5, i / 10), 0) == SUPPRESSION_MANUAL;
            assert_int_equal(there, expected[i]);
            count += expected[i];
        }
        assert_int_equal(suppressions_count(s), count);
    }
    suppressions_free(s);
}

static void a_hundred_thousand_are_found(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    Suppressions *s = suppressions_new();
    for (uint64_t i = 0; i < MANY; i++) {
        put(s, CATEGORY_NONE, hash_of(i * UINT64_C(0x9e3779b97f4a7c15), i), SUPPRESSION_MANUAL, 0);
    }
    assert_int_equal(suppressions_count(s), MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        Hash hash = hash_of(i * UINT64_C(0x9e3779b97f4a7c15), i);
        assert_int_equal(find(s, CATEGORY_SOCIAL, hash, 0), SUPPRESSION_MANUAL);
        hash.of[15] = 1;
        assert_int_equal(find(s, CATEGORY_SOCIAL, hash, 0), SUPPRESSION_NONE);
    }
    suppressions_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_holds_for_its_key_only),
        cmocka_unit_test(an_entry_without_category_holds_for_all),
        cmocka_unit_test(a_fact_wins_over_an_opt_out_whatever_their_order),
        cmocka_unit_test(it_ends_at_its_expiry),
        cmocka_unit_test(a_later_entry_replaces_the_one_before),
        cmocka_unit_test(the_platform_is_counted_and_judged),
        cmocka_unit_test(transactional_mails_ignore_only_an_opt_out),
        cmocka_unit_test(a_released_address_is_suppressed_again_only_by_something_newer),
        cmocka_unit_test(what_made_a_released_entry_does_not_make_it_again),
        cmocka_unit_test(a_repeat_and_a_weaker_reason_are_not_wanted),
        cmocka_unit_test(finding_02_a_complaint_replaces_what_is_released_more_easily),
        cmocka_unit_test(each_entry_knows_its_message),
        cmocka_unit_test(what_is_known_is_the_last_that_can_be_read),
        cmocka_unit_test(an_entry_about_every_address_holds_for_its_category),
        cmocka_unit_test(only_the_same_reason_and_end_stand_already),
        cmocka_unit_test(random_changes_agree_with_a_list),
        cmocka_unit_test(a_hundred_thousand_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
