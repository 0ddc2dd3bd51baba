// SPDX-License-Identifier: Apache-2.0
// Under which name a vendor's mails are counted, in one real Postgres.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/dispatcher/routing/vendors_internal.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

static int migrate_once(void **state)
{
    (void)state;
    const char *const schemas[] = {"stentor", "keys", "dispatcher", NULL};
    migrate_these(schemas);
    return 0;
}

static char *text(const char *value)
{
    return (char *)(uintptr_t)value;
}

// Two by definition, whose interface is one and the same.
static void vendors_by_definition_are_counted_by_their_own_names(void **state)
{
    (void)state;
    char url[256];
    Fixture *fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_dispatcher", url, sizeof url), .connections = 2});
    admin_exec(fx->admin, "TRUNCATE dispatcher.vendor_outcomes");
    static const char *const names[] = {"sms-acme", "sms-other"};
    Vendors vendors = {.places = map_new(NULL), .entries = map_new(NULL)};
    VendorPlace places[2];
    vendors.parts.pool = fx->pool;
    vendors.outcomes = vendors_count_outcomes(&vendors);
    for (size_t i = 0; i < 2; i++) {
        places[i] = (VendorPlace){
            .vendors = &vendors,
            .vendor = {.name = names[i]},
            .api = vendor_find(str_from(names[i])),
            .owner = text("acme")};
        map_put(vendors.places, str_from(names[i]), &places[i]);
        vendor_note_taken(&places[i]);
    }
    vendor_note_taken(&places[1]);
    outcome_counts_tick(vendors.outcomes, clock_now_us());
    const char *found = "";
    for (int i = 0; found[0] == '\0' && i < 400; i++) {
        run_ms(&fx->loop, 20);
        found = admin_value(
            fx->admin, "SELECT coalesce(string_agg(vendor || ' ' || accepted, ', ' ORDER BY vendor"
                       "), '') FROM dispatcher.vendor_outcomes");
    }
    assert_string_equal(found, "sms-acme 1, sms-other 2");
    assert_ptr_equal(vendors_find_place(&vendors, STR("acme"), STR("sms-other")), &places[1]);
    assert_ptr_equal(vendors_find_place(&vendors, STR("acme"), STR("sms-acme")), &places[0]);
    assert_null(vendors_find_place(&vendors, STR("other"), STR("sms-acme")));
    assert_null(vendors_find_place(&vendors, STR("acme"), STR("definition")));
    run_ms(&fx->loop, 200); // what the answer is compared with
    outcome_counts_free(vendors.outcomes);
    fixture_free(fx);
    map_free(vendors.places);
    map_free(vendors.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vendors_by_definition_are_counted_by_their_own_names),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
