// SPDX-License-Identifier: Apache-2.0
// One group of submissions on its way to the commit: ids, keys, events, rows. Accept's inside, not
// for others.
#pragma once

#include "services/ingest/accept.h"
#include "services/ingest/accept_sql.h"

typedef struct Group {
    Accept *accept;
    Arena *arena;
    Submission *first;
    size_t notifications;
    size_t bytes;
    int64_t accepted_at_us;
    const char **ids; // one per notification, in order
    uint8_t (*hashes)[ADDRESS_HASH_LEN];
    KeyWant *wants;
    AcceptRow *rows;
    size_t row_count;
    bool built;          // rows are complete: only the transaction is repeated
    int64_t give_up_us;  // of clock_mono_us
    int64_t retry_at_us; // 0: something is in the air
    int tries;
} Group;

// Ids and key wants of all notifications.
void group_prepare(Group *group, Str hash_key);
// Seals, packs and lays out the rows, once all wants are answered. ERROR_TRANSIENT: a key was not
// found.
bool group_build(Group *group, Error *err);
