// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/renderer/second_check.h"
#include "stentor/v1/status.pb-c.h"

#define NOTIFICATION "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

static const uint8_t HASH[SUPPRESSION_HASH_LEN] = {1, 2, 3};

typedef struct World {
    Arena *arena;
    MasterKey *master;
    DataKey *key;
    Suppressions *suppressions;
    Request request;
    Stentor__V1__Meta meta;
    Sender sender;
    Job job;
} World;

static World w;

static char *copy(const char *text)
{
    return arena_cstr(w.arena, str_from(text));
}

static void seal_address(const char *to)
{
    Stentor__V1__Address address;
    stentor__v1__address__init(&address);
    address.address = copy(to);
    Str packed;
    assert_true(event_pack(&address.base, w.arena, &packed, NULL));
    w.request.address = seal(w.key, STR("acme"), STR(NOTIFICATION), "address", packed, w.arena);
}

static int begin(void **state)
{
    (void)state;
    char text[132];
    uint8_t wrapped[WRAPPED_KEY_LEN];
    w = (World){.arena = arena_new(0), .suppressions = suppressions_new()};
    master_key_generate(text);
    w.master = master_key_parse(str_from(text), NULL);
    w.key = data_key_new(w.master, (const uint8_t *)"0123456789abcdef", 1, wrapped);
    stentor__v1__meta__init(&w.meta);
    w.meta.tenant = copy("acme");
    w.meta.event_id = copy("cause");
    w.meta.notification_id = copy(NOTIFICATION);
    stentor__v1__notification_request__init(&w.request);
    w.request.meta = &w.meta;
    w.request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    w.request.address_hash = pb_data(str_of(HASH, sizeof HASH));
    w.request.batch_id = copy("dbt_1");
    seal_address("Alice@Example.com");
    w.job = (Job){.request = &w.request, .key = w.key, .now_us = 1000, .arena = w.arena};
    return 0;
}

static int end(void **state)
{
    (void)state;
    suppressions_free(w.suppressions);
    data_key_free(w.key);
    master_key_free(w.master);
    arena_free(w.arena);
    return 0;
}

static const char *check(void)
{
    const char *reason = NULL;
    HashKeys keys = master_hash_keys(w.master);
    return second_check(w.suppressions, &w.sender, &keys, &w.job, &reason);
}

static void nothing_bars_by_default(void **state)
{
    (void)state;
    assert_null(check());
}

static void a_suspended_tenant_is_barred_whatever_the_category(void **state)
{
    (void)state;
    w.sender.suspended = true;
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_SECURITY;
    assert_string_equal(check(), "tenant_suspended");
}

static void an_opt_out_bars_marketing_and_no_transactional_mail(void **state)
{
    (void)state;
    suppressions_put(
        w.suppressions, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, HASH, SUPPRESSION_OPT_OUT, 0);
    assert_string_equal(check(), "opt_out");
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    assert_null(check());
}

static void an_expired_one_bars_no_more(void **state)
{
    (void)state;
    suppressions_put(
        w.suppressions, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, HASH, SUPPRESSION_MANUAL, 1001);
    assert_string_equal(check(), "manual");
    w.job.now_us = 1001;
    assert_null(check());
}

static void the_platforms_list_is_asked_by_its_own_hash(void **state)
{
    (void)state;
    uint8_t hash[ADDRESS_HASH_LEN];
    address_hash(
        master_hash_key(w.master), STR("platform"), CHANNEL_EMAIL, STR("alice@example.com"), hash);
    suppressions_put(
        w.suppressions, STR("platform"), CHANNEL_EMAIL, CATEGORY_NONE, hash, SUPPRESSION_COMPLIANCE,
        0);
    assert_string_equal(check(), "compliance");
    seal_address("bob@example.com");
    assert_null(check());
    w.job.key = NULL; // erased: the status says so below
    assert_null(check());
}

static void the_status_says_it(void **state)
{
    (void)state;
    BusOut out;
    Error err = {0};
    assert_true(suppressed_event(&w.job, "opt_out", "why", &out, &err));
    assert_string_equal(out.subject, "ntf.status.acme.email.suppressed");
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, out.payload, w.arena, &err);
    assert_non_null(status);
    assert_string_equal(status->reason_code, "opt_out");
    assert_string_equal(status->batch_id, "dbt_1");
    BusOut again;
    w.job.now_us += 5;
    assert_true(suppressed_event(&w.job, "opt_out", "why", &again, &err));
    assert_true(str_eq(out.event_id, again.event_id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_bars_by_default, begin, end),
        cmocka_unit_test_setup_teardown(
            a_suspended_tenant_is_barred_whatever_the_category, begin, end),
        cmocka_unit_test_setup_teardown(
            an_opt_out_bars_marketing_and_no_transactional_mail, begin, end),
        cmocka_unit_test_setup_teardown(an_expired_one_bars_no_more, begin, end),
        cmocka_unit_test_setup_teardown(the_platforms_list_is_asked_by_its_own_hash, begin, end),
        cmocka_unit_test_setup_teardown(the_status_says_it, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
