// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/names/event_type.h"

static void assert_plain(const char *written, const char *plain)
{
    Str got = event_type_plain(str_from(written));
    if (!str_eq(got, str_from(plain))) {
        fail_msg("'%s' is '%.*s', not '%s'", written, STR_ARG(got), plain);
    }
}

static void the_documents_names_are_ours(void **state)
{
    (void)state;
    assert_plain("PlaceOrderCommand", "PlaceOrder");
    assert_plain("CompleteOrderCommand", "CompleteOrder");
    assert_plain("CancelOrderCommand", "CancelOrder");
    assert_plain("UserCheckedOutEvent", "UserCheckedOut");
    assert_plain("UserCheckedOutIntegrationEvent", "UserCheckedOut");
    assert_plain("StatusChangedEvent", "StatusChanged");
    assert_plain("CleanUpSentEmailIntegrationEvent", "CleanUpSentEmail");
    assert_plain("ResendErrorEmailIntegrationEvent", "ResendErrorEmail");
    assert_plain("PlaceOrder", "PlaceOrder");
}

static void any_other_type_means_itself(void **state)
{
    (void)state;
    static const char *const same[] = {
        "FeedbackCreatedIntegrationEvent",
        "stay.confirmed",
        "Command",
        "Event",
        "IntegrationEvent",
        "placeOrderCommand",
        "PlaceOrderCommandEvent",
        "PlaceOrderTimeoutEvent",
        "CleanUpOrdersCommand",
        "notify",
        "notifyCommand",
        "",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_plain(same[i], same[i]);
    }
    assert_false(event_type_is_known(STR("PlaceOrderTimeout")));
    assert_true(event_type_is_known(STR("PlaceOrder")));
}

static void a_tenants_events_are_read_by_dotted_names_too(void **state)
{
    (void)state;
    assert_plain("TenantCreated", "TenantCreated");
    assert_plain("TenantCreatedIntegrationEvent", "TenantCreated");
    assert_plain("tenant.created.v1", "TenantCreated");
    assert_plain("tenant.updated", "TenantUpdated");
    assert_plain("melmastoon.tenant.suspended.v12", "TenantSuspended");
    assert_plain("tenant_reactivated", "TenantReactivated");
    assert_plain("hotel.tenant-deleted", "TenantDeleted");
    assert_plain("tenants.created", "tenants.created");
    assert_plain("subtenant.created", "subtenant.created");
    assert_plain("tenant.created.v", "tenant.created.v");
    assert_plain("tenant.created.later", "tenant.created.later");
    assert_plain(".v1", ".v1");
    assert_int_equal(event_type_of_tenant(STR("TenantDeleted")), TENANT_EVENT_DELETED);
    assert_int_equal(event_type_of_tenant(STR("PlaceOrder")), TENANT_EVENT_NONE);
}

static void assert_urn(const char *urn, const char *type)
{
    Str got = event_type_of_urn(str_from(urn));
    if (!str_eq(got, str_from(type))) {
        fail_msg("'%s' is '%.*s', not '%s'", urn, STR_ARG(got), type);
    }
}

static void a_urn_names_its_message(void **state)
{
    (void)state;
    assert_urn("urn:message:BookWorm.Contracts:PlaceOrderCommand", "PlaceOrderCommand");
    assert_urn("urn:message:BookWorm.Contracts:Orders+PlaceOrder", "PlaceOrder");
    assert_urn("urn:message:MassTransit:Fault[[BookWorm.Contracts:PlaceOrderCommand]]", "Fault");
    assert_urn("urn:message:PlaceOrder", "PlaceOrder");
    assert_urn("urn:message:", "");
    assert_urn("urn:other:PlaceOrder", "");
    assert_urn("PlaceOrder", "");
    assert_urn("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documents_names_are_ours),
        cmocka_unit_test(any_other_type_means_itself),
        cmocka_unit_test(a_tenants_events_are_read_by_dotted_names_too),
        cmocka_unit_test(a_urn_names_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
