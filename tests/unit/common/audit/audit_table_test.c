// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/audit/audit_table.h"
#include "common/base/id.h"

static const int64_t NOW_US = 1795000000000000;

static int make(void **state)
{
    *state = audit_table_new();
    return 0;
}

static int unmake(void **state)
{
    audit_table_free(*state);
    return 0;
}

static void an_entry_tells_its_id_and_its_time(void **state)
{
    static const char *const ids[] = {
        "ntf_00000000000000000000000000", "ntf_7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "ntf_01M7ZVTCXFEPJHRZM08Q05HZF9", "ntf_0123456789ABCDEFGHJKMNPQRS"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        AuditEntry *entry = audit_entry(*state, str_from(ids[i]), STR("acme"));
        char id[AUDIT_ID_SIZE];
        int64_t ms = 0;
        assert_non_null(entry);
        audit_entry_id(entry, id);
        assert_string_equal(id, ids[i]);
        assert_true(id_parse(str_from(ids[i]), "ntf_", &ms));
        assert_int_equal(audit_entry_created_us(entry), ms * 1000);
    }
}

static void what_is_no_id_or_no_tenant_makes_no_entry(void **state)
{
    assert_null(audit_entry(*state, STR("unknown"), STR("acme")));
    assert_null(audit_entry(*state, STR("ntf_81M7ZVTCXFEPJHRZM08Q05HZF9"), STR("acme")));
    assert_null(audit_entry(*state, STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9"), STR("No Tenant")));
    assert_null(audit_find(*state, STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9"), STR("acme")));
    assert_int_equal(audit_table_count(*state), 0);
}

static void the_same_id_of_two_tenants_is_two_entries(void **state)
{
    Str id = STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9");
    AuditEntry *first = audit_entry(*state, id, STR("acme"));
    AuditEntry *second = audit_entry(*state, id, STR("other"));
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(audit_find(*state, id, STR("acme")), first);
    assert_string_equal(audit_tenant(*state, first->tenant), "acme");
    assert_string_equal(audit_tenant(*state, second->tenant), "other");
}

static void only_the_span_and_the_tenant_that_were_asked_for(void **state)
{
    char inside[ID_SIZE], before[ID_SIZE], at_end[ID_SIZE];
    id_new("ntf_", NOW_US, inside);
    id_new("ntf_", NOW_US - 1000, before);
    id_new("ntf_", NOW_US + 5000, at_end);
    audit_table_span(*state, NOW_US, NOW_US + 5000);
    audit_table_only(*state, STR("acme"));
    assert_non_null(audit_entry(*state, str_from(inside), STR("acme")));
    assert_null(audit_entry(*state, str_from(before), STR("acme")));
    assert_null(audit_entry(*state, str_from(at_end), STR("acme")));
    assert_null(audit_entry(*state, str_from(inside), STR("other")));
}

static void of_before_the_retention_only_what_the_accept_log_names(void **state)
{
    Str id = STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9");
    int64_t created_us = audit_entry_created_us(audit_accepted(*state, id, STR("other")));
    audit_table_kept(*state, created_us + 1);
    assert_null(audit_entry(*state, id, STR("acme")));
    AuditEntry *entry = audit_accepted(*state, id, STR("acme"));
    assert_non_null(entry);
    assert_ptr_equal(audit_entry(*state, id, STR("acme")), entry);
    audit_table_kept(*state, created_us);
    assert_non_null(audit_entry(*state, id, STR("globex")));
}

static void a_hundred_thousand_are_found_again(void **state)
{
    enum { COUNT = 100000 };
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < COUNT; i++) {
            uint8_t entropy[10] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)};
            char id[ID_SIZE];
            id_derived("ntf_", NOW_US, entropy, id);
            AuditEntry *entry = audit_entry(*state, str_from(id), STR("acme"));
            assert_int_equal(entry->rendered, pass == 0 ? 0 : (uint32_t)i + 1);
            entry->rendered = (uint32_t)i + 1;
        }
        assert_int_equal(audit_table_count(*state), COUNT);
    }
}

static void a_second_reading_forgets_what_was_seen_but_not_what_was_missed(void **state)
{
    AuditEntry *entry = audit_entry(*state, STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9"), STR("acme"));
    entry->seen = SEEN_ACCEPTED | SEEN_REPAIRED;
    entry->ledger = 6;
    entry->moved_us = NOW_US;
    entry->missing = 5;
    audit_table_reread(*state);
    assert_int_equal(entry->seen, SEEN_REPAIRED);
    assert_int_equal(entry->ledger, 0);
    assert_int_equal(entry->moved_us, 0);
    assert_int_equal(entry->missing, 0);
    assert_int_equal(entry->before, 5);
    assert_ptr_equal(audit_find(*state, STR("ntf_01M7ZVTCXFEPJHRZM08Q05HZF9"), STR("acme")), entry);
}

static void attempts_past_the_last_bit_share_it(void **state)
{
    (void)state;
    assert_int_equal(audit_attempt_bit(0), 0);
    assert_int_equal(audit_attempt_bit(-3), 0);
    assert_int_equal(audit_attempt_bit(1), 2);
    assert_int_equal(audit_attempt_bit(30), UINT32_C(1) << 30);
    assert_int_equal(audit_attempt_bit(31), UINT32_C(1) << 31);
    assert_int_equal(audit_attempt_bit(4000), UINT32_C(1) << 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_entry_tells_its_id_and_its_time, make, unmake),
        cmocka_unit_test_setup_teardown(what_is_no_id_or_no_tenant_makes_no_entry, make, unmake),
        cmocka_unit_test_setup_teardown(the_same_id_of_two_tenants_is_two_entries, make, unmake),
        cmocka_unit_test_setup_teardown(
            only_the_span_and_the_tenant_that_were_asked_for, make, unmake),
        cmocka_unit_test_setup_teardown(
            of_before_the_retention_only_what_the_accept_log_names, make, unmake),
        cmocka_unit_test_setup_teardown(a_hundred_thousand_are_found_again, make, unmake),
        cmocka_unit_test_setup_teardown(
            a_second_reading_forgets_what_was_seen_but_not_what_was_missed, make, unmake),
        cmocka_unit_test(attempts_past_the_last_bit_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
