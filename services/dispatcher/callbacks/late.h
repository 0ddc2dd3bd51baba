// SPDX-License-Identifier: Apache-2.0
// Vendors' events that STATUS has not got: they are so old that the log may have forgotten an
// earlier copy, they name no notification, or they are of calls that were not answered. Each is
// found by its vendor's message id, published unless it came before within a week, and goes on as a
// proof. A mail is in the ledger under its vendor's id as soon as its outcome is recorded, so an
// event that comes before that waits.
#pragma once

#include "services/dispatcher/dispatcher_internal.h"
#include "stentor/v1/status.pb-c.h"

typedef struct LateEvent {
    Delivery *delivery;
    Stentor__V1__NotificationStatus *status; // checked
} LateEvent;

// The time under which it is noted: the vendor's, so a repeat has the same. Of an event without one
// its notification's.
int64_t late_noted_us(const Stentor__V1__NotificationStatus *status);
void late_batch(Dispatcher *dispatcher, const LateEvent *events, size_t count);
// settle.c: those whose notification is known now; settles their deliveries.
void settle_found(Dispatcher *dispatcher, const LateEvent *events, size_t count);
