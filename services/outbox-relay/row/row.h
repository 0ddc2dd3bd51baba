// SPDX-License-Identifier: Apache-2.0
// One row of an outbox table becomes one message: a domain event (JSON with CloudEvents headers) or
// a NotifyCommand. Pure. Rows come from outside: for any content the result is a message or
// ERROR_PERMANENT with the mapping's field, the column and what is wrong with it ("fields.to
// (column 'recipient_email') is empty"). The text quotes no value of the row but type and tenant.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/outbox/sql/relay_sql.h"

// Of a column: its text. Of a member that Postgres has extracted: a string as its text behind a
// quotation mark ("Hello), anything else as JSON.
typedef struct RowValue {
    Str text;
    bool is_null;
} RowValue;

typedef struct Row {
    Str key;
    // Which database it is from (stentor_outbox.source): two may have rows with the same keys.
    Str source;
    int32_t attempt;        // 0: of an event
    const RowValue *values; // of Mapping.columns, then of Mapping.members
    // Requests: when the request was recorded; it becomes NotifyCommand.produced_at_us and so part
    // of the notification's id.
    int64_t made_at_us;
} Row;

typedef struct RowMessage {
    BusOut out; // subject, Nats-Msg-Id, payload, headers, traceparent; all in the arena
    Str tenant;
    char notification_id[ID_SIZE]; // requests; "" for events
} RowMessage;

// `kinds` as in RelaySql. What it points to lives in `arena` or in the values.
bool row_message(
    const Mapping *mapping, const ColumnKind *kinds, const Row *row, Arena *arena, RowMessage *ret,
    Error *err);
// A request's id depends on made_at_us: if `note` answers another time, build the message again.
