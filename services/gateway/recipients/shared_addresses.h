// SPDX-License-Identifier: Apache-2.0
// Which of the addresses that are about to be stored another recipient has already. An address that
// was revoked counts for neither. What follows from it is the tenant's setting shared_addresses.
#pragma once

#include "services/gateway/recipients/recipient_json.h"
#include "services/gateway/recipients/recipients_api.h"

enum { SHARED_TEXT_SIZE = 160, SHARED_FIELD_SIZE = 40 };

// A recipient that is about to be stored, and the first of its addresses that is shared.
typedef struct SharedOwner {
    Str id;
    const PersonRecord *record; // NULL: not asked for
    Str other;                  // who has it too; empty: no other
    size_t at;                  // the address's place in the record
} SharedOwner;

// Adds the question to the transaction. false: there is no address to ask for, nothing was added.
bool shared_addresses_ask(
    const RecipientsApi *api, Str tenant, const SharedOwner *owners, size_t count, DbTxn *txn);
// Its result. What `other` names is copied into `arena`.
void shared_addresses_read(const PGresult *rows, SharedOwner *owners, size_t count, Arena *arena);
// Those that two of the owners have: of the later one the earlier is the other.
void shared_addresses_among(
    const RecipientsApi *api, Str tenant, SharedOwner *owners, size_t count);

// "addresses[2].address", and what is said of it.
void shared_addresses_field(const SharedOwner *owner, char out[SHARED_FIELD_SIZE]);
void shared_addresses_text(const SharedOwner *owner, char out[SHARED_TEXT_SIZE]);
