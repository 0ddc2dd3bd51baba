// SPDX-License-Identifier: Apache-2.0
// The counters of the limits: one statement takes the places of a whole group in
// ingest.gate_counters, which all replicas share. Pure but for the statement.
#pragma once

#include "common/base/map.h"
#include "common/db/db.h"
#include "common/model/enums.h"
#include "common/model/rules/limits.h"

// One counter and how many places a group takes in it.
typedef struct Counter {
    Str tenant;
    Str subject;     // "": the tenant; else a recipient's id or the hex of an address hash
    Channel channel; // NONE: of all channels
    Limits limits;
    OverLimit over_limit;
    int64_t wanted;
    LimitPlace before; // read back: places that were taken before the group's first
    int64_t given;     // by counters_next
} Counter;

// The limits that one notification may be under.
typedef enum GateCounter {
    GATE_COUNTER_TENANT,
    GATE_COUNTER_RECIPIENT,
    GATE_COUNTER_CHANNEL, // of the tenant on its channel
    GATE_COUNTER_RECIPIENT_CHANNEL,
    GATE_COUNTERS
} GateCounter;

typedef struct Counters {
    Arena *arena;
    Map *by_name;
    Counter **items;
    size_t count;
    size_t cap;
    bool dry; // the places are looked at and none is taken
} Counters;

void counters_init(Counters *counters, Arena *arena, size_t cap);
void counters_done(Counters *counters);
// The counter with one more place wanted.
Counter *counters_want(Counters *counters, const Counter *what);
void counters_ask(const Counters *counters, DbTxn *txn, int64_t now_us);
bool counters_read(Counters *counters, const DbTxn *txn, Error *err);
LimitPlace counters_next(Counter *counter); // the next place of those that were taken
