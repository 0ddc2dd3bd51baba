// SPDX-License-Identifier: Apache-2.0
// Names of domain events, however the publisher spells them: PlaceOrderCommand is PlaceOrder,
// ResendErrorEmailIntegrationEvent is ResendErrorEmail. Everything that asks which event one is
// asks with the plain name. Pure.
//
// Law: only the events that Stentor itself reads or that its order saga publishes have other names
// (the tables in event_type.c). Any other type means itself: a shop may publish FeedbackCreated and
// FeedbackCreatedIntegrationEvent, and they are two. A tenant's events have dotted names too:
// tenant.created.v1, hotel.tenant.created.v1 and tenant_created are TenantCreated. The saga's own
// PlaceOrderTimeout and CleanUpOrders have no other names, for the rights to publish them go by the
// subject.
#pragma once

#include "common/base/str.h"

// The plain name: a slice of `written` or of the table; `written` itself where it has none.
Str event_type_plain(Str written);
// The message of a URN of MassTransit: "urn:message:BookWorm.Contracts:PlaceOrderCommand" gives
// "PlaceOrderCommand", a nested type ("Orders+PlaceOrder") its last name. Empty: it is no such URN.
Str event_type_of_urn(Str urn);
// Do the tables have it? `plain` as event_type_plain gives it.
bool event_type_is_known(Str plain);

typedef enum TenantEventKind {
    TENANT_EVENT_NONE,
    TENANT_EVENT_CREATED,
    TENANT_EVENT_UPDATED,
    TENANT_EVENT_SUSPENDED,
    TENANT_EVENT_REACTIVATED,
    TENANT_EVENT_DELETED,
    TENANT_EVENT_COUNT
} TenantEventKind;

// NONE: another type's. `plain` as event_type_plain gives it.
TenantEventKind event_type_of_tenant(Str plain);
