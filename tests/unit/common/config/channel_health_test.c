// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/config/channel_health.h"
#include "common/config/config_entry.h"

static Stentor__V1__ChannelHealth entry(const char *tenant, const char *vendor)
{
    Stentor__V1__ChannelHealth health;
    stentor__v1__channel_health__init(&health);
    health.tenant = (char *)(uintptr_t)tenant;
    health.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    health.vendor = (char *)(uintptr_t)vendor;
    health.down_since_us = 1;
    health.changed_at_us = 2;
    return health;
}

static void an_entry_goes_where_readers_believe_it(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__ChannelHealth down = entry("platform", "smtp");
    Stentor__V1__ChannelHealth up = down;
    up.down_since_us = 0;
    BusOut out, later;
    ConfigName name;
    Error err = {0};
    assert_true(channel_health_event(&down, arena, &out, &err));
    assert_true(channel_health_event(&up, arena, &later, &err));
    assert_string_equal(out.subject, "cfg.channel_health.platform.email_smtp");
    assert_false(str_eq(out.event_id, later.event_id)); // the server drops neither as a repeat
    BusMessage message = {
        .subject = str_from(out.subject), .payload = out.payload, .event_id = out.event_id};
    assert_true(config_entry_check(&message, &name, arena, &err));
    assert_true(str_eq(name.key, STR("email_smtp")));
    // Another tenant's, or another vendor's, is not believed there.
    Stentor__V1__ChannelHealth other = entry("acme", "smtp");
    assert_true(channel_health_event(&other, arena, &out, &err));
    message.payload = out.payload;
    assert_false(config_entry_check(&message, &name, arena, &err));
    other = entry("platform", "sendgrid");
    assert_true(channel_health_event(&other, arena, &out, &err));
    message.payload = out.payload;
    assert_false(config_entry_check(&message, &name, arena, &err));
    arena_free(arena);
}

static void a_vendor_that_is_no_token_has_no_entry(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "a.b", "A",
                                      "a b", "*",   "123456789012345678901234567890123"};
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Stentor__V1__ChannelHealth health = entry("platform", bad[i]);
        BusOut out;
        Error err = {0};
        assert_false(channel_health_event(&health, arena, &out, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    arena_free(arena);
}

static void a_tenant_s_own_vendor_has_an_entry_of_its_own(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__ChannelHealth own = entry("acme", "sendgrid");
    BusOut out;
    ConfigName name;
    Error err = {0};
    assert_true(channel_health_event(&own, arena, &out, &err));
    assert_string_equal(out.subject, "cfg.channel_health.acme.email_sendgrid");
    BusMessage message = {
        .subject = str_from(out.subject), .payload = out.payload, .event_id = out.event_id};
    assert_true(config_entry_check(&message, &name, arena, &err));
    arena_free(arena);
}

static void a_suspension_ends_with_its_time(void **state)
{
    (void)state;
    Stentor__V1__ChannelHealth health = entry("platform", "smtp");
    assert_int_equal(channel_health_status(&health, 10), CHANNEL_DOWN);
    health.status = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED;
    assert_int_equal(channel_health_status(&health, 10), CHANNEL_DISABLED);
    health.until_us = 20;
    assert_int_equal(channel_health_status(&health, 19), CHANNEL_DISABLED);
    assert_int_equal(channel_health_status(&health, 20), CHANNEL_DOWN);
    health.down_since_us = 0;
    assert_int_equal(channel_health_status(&health, 20), CHANNEL_ACTIVE);
    health.status = STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DEGRADED;
    assert_string_equal(channel_status_name(channel_health_status(&health, 20)), "degraded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_goes_where_readers_believe_it),
        cmocka_unit_test(a_vendor_that_is_no_token_has_no_entry),
        cmocka_unit_test(a_tenant_s_own_vendor_has_an_entry_of_its_own),
        cmocka_unit_test(a_suspension_ends_with_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
