// SPDX-License-Identifier: Apache-2.0
// One group of submissions on its way to the commit: notices, the gate's decisions, keys, events,
// rows. Accept's inside, not for others.
#pragma once

#include "common/gate/gate_run.h"
#include "services/ingest/accept/accept.h"
#include "services/ingest/accept/accept_sql.h"

typedef struct Group {
    Accept *accept;
    Arena *arena;
    Submission *first;    // those that are answered leave
    size_t notifications; // that were asked for
    size_t bytes;
    int64_t accepted_at_us;
    int64_t gathered_at_us; // the same instant of clock_mono_us
    GateRun gate; // its notices: one per notification, in order, then the copies for guardians
    int64_t gated_after_us; // the gate's time
    bool gated;             // decided, once for all: a repeat of the rest keeps the decisions
    KeyWant *wants;
    size_t want_count;
    AcceptPart *parts;
    size_t part_count;
    size_t row_count;    // that the parts may make
    size_t lowered;      // notices beyond their tenant's share
    bool built;          // parts are complete: only the transaction is repeated
    bool committed;      // only the repeats' answers are missing
    int64_t give_up_us;  // of clock_mono_us
    int64_t retry_at_us; // 0: something is in flight
    int tries;
} Group;

// Notices with their ids, ready for gate_run.
void group_prepare(Group *group);
// The keys that seal what goes on, and those that open recipients' stored addresses.
void group_want_keys(Group *group, const Keyring *keyring);
// Opens addresses, seals, packs and lays out the parts, once all wants are answered.
// ERROR_TRANSIENT: a key was not found. What is beyond a tenant's share takes a lower lane.
bool group_build(Group *group, FairShare *share, Error *err);
// After the commit, `row_count` of them, in the group's arena; accept_id 0: nothing of it is new.
PublishedRow *group_published_rows(const Group *group);
