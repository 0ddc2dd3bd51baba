// SPDX-License-Identifier: Apache-2.0
// Which recipients are meant: every id, identity and label that a batch of events names, in one
// transaction: a statement on people.recipients, one on people.labels.
#pragma once

#include "common/db/db.h"
#include "common/trigger/trigger_apply.h"

typedef struct TriggerWant {
    Str tenant;
    Target *target; // none with an address; its recipient_id is filled, of a label its members
} TriggerWant;

// Of several recipients with one identity it is the one that was made first.
void recipient_lookup_add(DbTxn *txn, const TriggerWant *wants, size_t count);
// The transaction's results: who was found has its recipient_id, in `arena`.
void recipient_lookup_read(const DbTxn *txn, const TriggerWant *wants, size_t count, Arena *arena);
