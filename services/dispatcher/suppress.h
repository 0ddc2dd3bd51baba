// SPDX-License-Identifier: Apache-2.0
// A rejection because of the address makes a suppression, so that no further mail goes there.
// Law: made of the ledger's row alone and stored before the delivery is acked, so that a redelivery
// makes the same event; an address released since is not suppressed again by it.
#pragma once

#include "common/model/suppressions.h"
#include "services/dispatcher/job.h"

// hard_bounce: the mailbox does not exist (5.1.1, 5.1.6). invalid_address: no mail can go there
// (5.1.2, 5.1.3, 5.1.10, or a malformed address). SUPPRESSION_NONE: the rejection is not about the
// address.
SuppressionReason suppress_reason(const LedgerRow *row);

// Stores the suppression when there is one to make, before the delivery's ack. false: it cannot be
// made.
bool suppress_address(Job *job, Bus *bus, const Suppressions *known, Error *err);
