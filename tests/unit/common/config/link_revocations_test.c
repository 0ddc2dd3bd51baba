// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/link_revocations.h"

#define NTF "ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"
#define RCP "rcp_01M2V3W4X5Y6Z7A8B9CADBECFE"
#define AT_US INT64_C(1790000000000000)

static uint8_t HASH[ADDRESS_HASH_LEN] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

typedef struct World {
    Arena *arena;
    LinkRevocations *revocations;
    Stentor__V1__LinkRevocation entry;
} World;

static World w;

static int begin(void **state)
{
    (void)state;
    w = (World){.arena = arena_new(0), .revocations = link_revocations_new()};
    stentor__v1__link_revocation__init(&w.entry);
    w.entry.tenant = arena_cstr(w.arena, STR("acme"));
    w.entry.before_us = AT_US;
    return 0;
}

static int end(void **state)
{
    (void)state;
    link_revocations_free(w.revocations);
    arena_free(w.arena);
    return 0;
}

// Stores w.entry as its own event says; the key.
static const char *store(void)
{
    BusOut out;
    Error err = {0};
    assert_true(link_revocation_event(&w.entry, w.arena, &out, &err));
    const char *key = out.subject + strlen("cfg.revocation.acme.");
    assert_true(link_revocations_put(w.revocations, STR("acme"), str_from(key), out.payload, &err));
    return key;
}

static LinkOwner owner(int64_t issued_at_us)
{
    return (LinkOwner){
        .tenant = STR("acme"),
        .notification_id = STR(NTF),
        .recipient_id = STR(RCP),
        .who = str_of(HASH, LINK_WHO_LEN),
        .issued_at_us = issued_at_us,
    };
}

static void assert_ends_at_its_time(void)
{
    LinkOwner before = owner(AT_US - 1);
    LinkOwner after = owner(AT_US);
    LinkOwner elsewhere = owner(AT_US - 1);
    elsewhere.tenant = STR("beta");
    assert_true(link_is_revoked(w.revocations, &before));
    assert_false(link_is_revoked(w.revocations, &after));
    assert_false(link_is_revoked(w.revocations, &elsewhere));
}

static void a_notification_a_recipient_an_address_and_a_tenant_are_revoked(void **state)
{
    (void)state;
    LinkOwner before = owner(AT_US - 1);
    assert_false(link_is_revoked(w.revocations, &before));
    w.entry.notification_id = arena_cstr(w.arena, STR(NTF));
    assert_string_equal(store(), "ntf." NTF);
    assert_ends_at_its_time();
    Error err = {0};
    assert_true(link_revocations_put(
        w.revocations, STR("acme"), STR("ntf." NTF), STR_EMPTY, &err)); // taken back
    assert_false(link_is_revoked(w.revocations, &before));
    stentor__v1__link_revocation__init(&w.entry);
    w.entry.tenant = arena_cstr(w.arena, STR("acme"));
    w.entry.before_us = AT_US;
    w.entry.recipient_id = arena_cstr(w.arena, STR(RCP));
    assert_string_equal(store(), "rcp." RCP);
    assert_ends_at_its_time();
}

static void an_address_is_known_by_the_beginning_of_its_hash(void **state)
{
    (void)state;
    w.entry.address_hash = pb_data(str_of(HASH, sizeof HASH));
    assert_memory_equal(store(), "adr.0102030405060708", 20);
    assert_ends_at_its_time();
    LinkOwner whole = owner(AT_US - 1);
    whole.who = str_of(HASH, sizeof HASH);
    assert_true(link_is_revoked(w.revocations, &whole));
    whole.who = STR_EMPTY;
    assert_false(link_is_revoked(w.revocations, &whole));
}

static void all_of_a_tenant_and_whenever(void **state)
{
    (void)state;
    assert_string_equal(store(), "all");
    assert_ends_at_its_time();
    w.entry.before_us = 0;
    (void)store();
    LinkOwner after = owner(AT_US + 1);
    assert_true(link_is_revoked(w.revocations, &after));
}

static void an_entry_that_is_not_its_subjects_is_refused(void **state)
{
    (void)state;
    BusOut out;
    Error err = {0};
    w.entry.notification_id = arena_cstr(w.arena, STR(NTF));
    assert_true(link_revocation_event(&w.entry, w.arena, &out, &err));
    assert_false(link_revocations_put(w.revocations, STR("acme"), STR("all"), out.payload, &err));
    assert_false(
        link_revocations_put(w.revocations, STR("beta"), STR("ntf." NTF), out.payload, &err));
    assert_false(
        link_revocations_put(w.revocations, STR("acme"), STR("ntf." NTF), STR("\xff"), &err));
    w.entry.recipient_id = arena_cstr(w.arena, STR(RCP));
    assert_false(link_revocation_event(&w.entry, w.arena, &out, &err)); // two at once
    w.entry.recipient_id = arena_cstr(w.arena, STR("rcp_x"));
    w.entry.notification_id = arena_cstr(w.arena, STR_EMPTY);
    assert_false(link_revocation_event(&w.entry, w.arena, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_notification_a_recipient_an_address_and_a_tenant_are_revoked),
        TEST(an_address_is_known_by_the_beginning_of_its_hash),
        TEST(all_of_a_tenant_and_whenever),
        TEST(an_entry_that_is_not_its_subjects_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
