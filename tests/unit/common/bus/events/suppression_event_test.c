// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"

static const uint8_t HASH[SUPPRESSION_HASH_LEN] = {0xab, 1, 2, 3};

static SuppressionSpec spec(void)
{
    return (SuppressionSpec){
        .tenant = STR("acme"),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .hash = HASH,
        .reason = SUPPRESSION_OPT_OUT,
        .at_us = INT64_C(1790000000123456),
        .by = STR("opt-out"),
        .address = STR("alice@example.com"),
    };
}

static Str key_in(const BusOut *out)
{
    Str prefix = STR("cfg.suppression.acme.");
    Str subject = str_from(out->subject);
    assert_true(str_starts(subject, prefix));
    return str_slice(subject, prefix.len, subject.len);
}

static bool take(Suppressions *s, Str tenant, Str key, Str payload, Error *err)
{
    BusMessage message = {.payload = payload, .sequence = 7};
    return suppression_apply(s, tenant, key, &message, err);
}

static SuppressionReason found(const Suppressions *s, Category category)
{
    return suppressions_find(
        s, STR("acme"), CHANNEL_EMAIL, category, HASH, INT64_C(1790000001000000));
}

static void what_is_made_is_taken(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Suppressions *s = suppressions_new();
    SuppressionSpec what = spec();
    BusOut out;
    Error err = {0};
    Stentor__V1__Suppression *entry = suppression_make(&what, arena);
    assert_string_equal(entry->masked_address, "ali***@example.com");
    assert_true(suppression_event(entry, arena, &out, &err));
    assert_true(take(s, STR("acme"), key_in(&out), out.payload, &err));
    assert_int_equal(found(s, CATEGORY_MARKETING), SUPPRESSION_OPT_OUT);
    assert_int_equal(found(s, CATEGORY_SOCIAL), SUPPRESSION_NONE);
    assert_true(take(s, STR("acme"), key_in(&out), STR_EMPTY, &err));
    assert_int_equal(found(s, CATEGORY_MARKETING), SUPPRESSION_NONE);
    // The removal is a message too, which the next entry replaces.
    assert_int_equal(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, HASH), 7);
    suppressions_free(s);
    arena_free(arena);
}

static void finding_02_what_cannot_be_read_counts_as_suppressed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Suppressions *s = suppressions_new();
    SuppressionSpec what = spec();
    BusOut out;
    Error err = {0};
    Stentor__V1__Suppression *entry = suppression_make(&what, arena);
    assert_true(suppression_event(entry, arena, &out, &err));
    suppression_unreadable(s, STR("acme"), key_in(&out), 9);
    assert_int_equal(found(s, CATEGORY_MARKETING), SUPPRESSION_UNREADABLE);
    assert_int_equal(found(s, CATEGORY_SOCIAL), SUPPRESSION_NONE);
    assert_int_equal(suppressions_count(s), 1);
    assert_int_equal(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, HASH), 9);
    assert_true(take(s, STR("acme"), key_in(&out), out.payload, &err));
    assert_int_equal(found(s, CATEGORY_MARKETING), SUPPRESSION_OPT_OUT);
    suppression_unreadable(s, STR("acme"), key_in(&out), 11); // what is known stays
    assert_int_equal(found(s, CATEGORY_MARKETING), SUPPRESSION_OPT_OUT);
    assert_int_equal(
        suppressions_sequence(s, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, HASH), 11);
    suppression_unreadable(s, STR("acme"), STR("email.any.00"), 12); // not a hash of any address
    assert_int_equal(suppressions_count(s), 1);
    // And no entry may say so of itself.
    entry->reason = STENTOR__V1__SUPPRESSION_REASON__SUPPRESSION_REASON_UNREADABLE;
    assert_false(suppression_event(entry, arena, &out, &err));
    suppressions_free(s);
    arena_free(arena);
}

static void the_same_cause_is_the_same_event(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    SuppressionSpec what = spec();
    BusOut one, two, later;
    Error err = {0};
    Stentor__V1__Suppression *first = suppression_make(&what, arena);
    Stentor__V1__Suppression *second = suppression_make(&what, arena);
    what.at_us++;
    Stentor__V1__Suppression *third = suppression_make(&what, arena);
    assert_true(suppression_event(first, arena, &one, &err));
    assert_true(suppression_event(second, arena, &two, &err));
    assert_true(suppression_event(third, arena, &later, &err));
    assert_string_equal(first->id, second->id);
    assert_true(str_eq(one.event_id, two.event_id));
    assert_false(str_eq(one.event_id, later.event_id));
    arena_free(arena);
}

static void a_release_ends_it_and_is_an_event_of_its_own(void **state)
{
    (void)state;
    static char who[] = "key1";
    Arena *arena = arena_new(0);
    Suppressions *s = suppressions_new();
    SuppressionSpec what = spec();
    what.category = CATEGORY_NONE;
    BusOut made, released;
    Error err = {0};
    Stentor__V1__Suppression *entry = suppression_make(&what, arena);
    assert_true(suppression_event(entry, arena, &made, &err));
    entry->released_at_us = what.at_us + 10;
    entry->released_by = who;
    assert_true(suppression_event(entry, arena, &released, &err));
    assert_false(str_eq(made.event_id, released.event_id));
    assert_string_equal(made.subject, released.subject);
    assert_true(take(s, STR("acme"), key_in(&made), made.payload, &err));
    assert_int_equal(found(s, CATEGORY_SOCIAL), SUPPRESSION_OPT_OUT);
    assert_true(take(s, STR("acme"), key_in(&made), released.payload, &err));
    assert_int_equal(found(s, CATEGORY_SOCIAL), SUPPRESSION_NONE);
    assert_false(suppressions_wants(
        s, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, HASH, SUPPRESSION_OPT_OUT, what.at_us, 0));
    suppressions_free(s);
    arena_free(arena);
}

static void an_entry_of_another_subject_is_refused(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Suppressions *s = suppressions_new();
    SuppressionSpec what = spec();
    BusOut out;
    Error err = {0};
    assert_true(suppression_event(suppression_make(&what, arena), arena, &out, &err));
    assert_false(take(s, STR("other"), key_in(&out), out.payload, &err));
    assert_non_null(strstr(err.text, "another"));
    assert_false(take(s, STR("acme"), STR("email.any.00"), out.payload, &err));
    assert_true(take(s, STR("acme"), STR("email.any.00"), STR_EMPTY, &err)); // nothing to remove
    assert_true(take(s, STR("acme"), STR("email"), STR_EMPTY, &err));
    assert_false(take(s, STR("acme"), key_in(&out), STR("\xff\xff"), &err));
    assert_int_equal(suppressions_count(s), 0);
    suppressions_free(s);
    arena_free(arena);
}

static void a_wrong_entry_is_not_made_an_event(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    BusOut out;
    Error err = {0};
    SuppressionSpec what = spec();
    Stentor__V1__Suppression *entry = suppression_make(&what, arena);
    entry->address_hash.len = 5;
    assert_false(suppression_event(entry, arena, &out, &err));
    assert_non_null(strstr(err.text, "address_hash"));
    entry = suppression_make(&what, arena);
    entry->reason = (Stentor__V1__SuppressionReason)99;
    assert_false(suppression_event(entry, arena, &out, &err));
    assert_non_null(strstr(err.text, "reason"));
    arena_free(arena);
}

static void it_is_shown_without_the_address(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Buf out;
    buf_init(&out, 4096);
    SuppressionSpec what = spec();
    suppression_json(&out, suppression_make(&what, arena));
    assert_non_null(strstr(buf_c(&out), "\"address\":\"ali***@example.com\""));
    assert_non_null(strstr(buf_c(&out), "\"category\":\"marketing\""));
    assert_non_null(strstr(buf_c(&out), "\"released_at\":null"));
    assert_null(strstr(buf_c(&out), "alice"));
    buf_done(&out);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_made_is_taken),
        cmocka_unit_test(finding_02_what_cannot_be_read_counts_as_suppressed),
        cmocka_unit_test(the_same_cause_is_the_same_event),
        cmocka_unit_test(a_release_ends_it_and_is_an_event_of_its_own),
        cmocka_unit_test(an_entry_of_another_subject_is_refused),
        cmocka_unit_test(a_wrong_entry_is_not_made_an_event),
        cmocka_unit_test(it_is_shown_without_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
