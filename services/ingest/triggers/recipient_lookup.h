// SPDX-License-Identifier: Apache-2.0
// Which recipients are meant: every id and identity that a batch of events names, in one statement
// on people.recipients.
#pragma once

#include "common/db/db.h"
#include "common/trigger/trigger_apply.h"

typedef struct TriggerWant {
    Str tenant;
    Target *target; // TARGET_RECIPIENT or TARGET_IDENTITY; its recipient_id is filled
} TriggerWant;

// Of several recipients with one identity it is the one that was made first.
void recipient_lookup_add(DbTxn *txn, const TriggerWant *wants, size_t count);
// The transaction's result: who was found has its recipient_id, in `arena`.
void recipient_lookup_read(const DbTxn *txn, const TriggerWant *wants, size_t count, Arena *arena);
