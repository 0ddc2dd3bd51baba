// SPDX-License-Identifier: Apache-2.0
// Names of domain events, however the publisher spells them: PlaceOrderCommand is PlaceOrder,
// ResendErrorEmailIntegrationEvent is ResendErrorEmail. Everything that asks which event one is asks
// with the plain name. Pure.
//
// Law: only the events that Stentor itself reads or that its order saga publishes have other names
// (the table in event_type.c). Any other type means itself: a shop may publish FeedbackCreated and
// FeedbackCreatedIntegrationEvent, and they are two. The saga's own PlaceOrderTimeout and
// CleanUpOrders have no other names, for the rights to publish them go by the subject.
#pragma once

#include "common/base/str.h"

// The plain name: a slice of `written` or of the table; `written` itself where it has none.
Str event_type_plain(Str written);
// The message of a URN of MassTransit: "urn:message:BookWorm.Contracts:PlaceOrderCommand" gives
// "PlaceOrderCommand", a nested type ("Orders+PlaceOrder") its last name. Empty: it is no such URN.
Str event_type_of_urn(Str urn);
// Does the table have it? `plain` as event_type_plain gives it.
bool event_type_is_known(Str plain);
