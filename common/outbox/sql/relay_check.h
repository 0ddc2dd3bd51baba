// SPDX-License-Identifier: Apache-2.0
// The columns, types and rights that a mapping requires of the database. Private to relay_*.c and
// the command line.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef enum WantedType {
    WANTED_ANY,
    WANTED_WHOLE, // smallint, integer, bigint
    WANTED_NUMBER,
    WANTED_TIME,
    WANTED_TEXT,
    WANTED_JSON, // or text that may be
} WantedType;

typedef struct Wanted {
    Str table;          // "public.email_outbox"
    Str column;         // empty: only the table
    Str field;          // of the mapping: "moments.sent.sent_at"; empty: for Stentor's own tables
    const char *rights; // of "w" (UPDATE of the column), "i", "d" (INSERT, DELETE of the table)
    WantedType type;
    Str found; // the column's type as SQL; empty before relay_sql_bind
    ColumnKind kind;
    bool is_timestamptz, is_timestamp;
} Wanted;

// Fills sql->wanted and sql->check.
void relay_check_build(RelaySql *sql);
// The wanted column; it is there.
const Wanted *relay_wanted(const RelaySql *sql, Str table, Str column);
