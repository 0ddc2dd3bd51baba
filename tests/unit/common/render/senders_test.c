// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/render/senders.h"
#include "stentor/v1/config.pb-c.h"

static bool put_reply_to(
    Senders *senders, const char *subject_tenant, const char *name, const char *reply_to,
    Error *err)
{
    Arena *arena = arena_new(0);
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(arena, STR("acme"));
    tenant.sender_address = arena_cstr(arena, STR("hi@acme.test"));
    tenant.sender_name = arena_cstr(arena, str_from(name));
    tenant.reply_to = arena_cstr(arena, str_from(reply_to));
    tenant.default_locale = arena_cstr(arena, STR("de"));
    Str bytes;
    assert_true(event_pack(&tenant.base, arena, &bytes, err));
    bool ok = senders_put(senders, str_from(subject_tenant), bytes, err);
    arena_free(arena);
    return ok;
}

static bool put(Senders *senders, const char *subject_tenant, const char *name, Error *err)
{
    return put_reply_to(senders, subject_tenant, name, "help@acme.test", err);
}

static void a_tenant_has_its_sender_and_others_have_none(void **state)
{
    (void)state;
    Error err = {0};
    Senders *senders = senders_new();
    assert_true(put(senders, "acme", "Acme", &err));
    assert_string_equal(senders_get(senders, STR("acme"))->address, "hi@acme.test");
    assert_string_equal(senders_get(senders, STR("acme"))->name, "Acme");
    assert_string_equal(senders_get(senders, STR("acme"))->reply_to, "help@acme.test");
    assert_string_equal(senders_get(senders, STR("acme"))->locale, "de");
    assert_string_equal(senders_get(senders, STR("other"))->address, "");
    assert_string_equal(senders_get(senders, STR("other"))->reply_to, "");
    assert_true(senders_put(senders, STR("acme"), STR(""), &err));
    assert_string_equal(senders_get(senders, STR("acme"))->address, "");
    senders_free(senders);
}

static void finding_02_a_tenant_that_cannot_be_read_counts_as_suspended(void **state)
{
    (void)state;
    Error err = {0};
    Senders *senders = senders_new();
    senders_unreadable(senders, STR("acme"));
    assert_true(senders_get(senders, STR("acme"))->suspended);
    assert_string_equal(senders_get(senders, STR("acme"))->address, "");
    assert_true(put(senders, "acme", "Acme", &err));
    assert_false(senders_get(senders, STR("acme"))->suspended);
    senders_unreadable(senders, STR("acme")); // what is known stays
    assert_string_equal(senders_get(senders, STR("acme"))->name, "Acme");
    senders_free(senders);
}

static void a_bad_entry_is_refused(void **state)
{
    (void)state;
    Error err = {0};
    Senders *senders = senders_new();
    assert_false(put(senders, "evil", "Acme", &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(put(senders, "acme", "Acme\r\nBcc: x", &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(put_reply_to(senders, "acme", "Acme", "a@b.test\nBcc: x@y.test", &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(senders_put(senders, STR("acme"), STR("\xff"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(senders_get(senders, STR("acme"))->name, "");
    senders_free(senders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_has_its_sender_and_others_have_none),
        cmocka_unit_test(finding_02_a_tenant_that_cannot_be_read_counts_as_suspended),
        cmocka_unit_test(a_bad_entry_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
