// SPDX-License-Identifier: Apache-2.0
// Mapping: describes how one outbox table of an application is read and written, from its JSON
// file. Reference of the format: MAPPING.md. Pure: relay_sql.h checks that the columns exist. Law:
// a mapping never changes after it is read; every name in it becomes a quoted identifier and every
// value a quoted literal.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/rules/ladder.h"

enum {
    MAPPING_BYTES_MAX = 64 * 1024,
    MAPPING_NAME_MAX = 32,    // [a-z0-9_-]; part of message ids: never change it later
    MAPPING_COLUMNS_MAX = 32, // read for the message
    MAPPING_ORDER_MAX = 4,
    MAPPING_STATES_MAX = 2,
    MAPPING_PATH_MAX = 8, // tokens of "payload->a->b" after the column
    MAPPING_MEMBERS_MAX = 128,
};

typedef enum MappingPublish {
    MAPPING_EVENT,   // the payload as a domain event on evt.<tenant>.<type>
    MAPPING_REQUEST, // a NotifyCommand on evt.<tenant>.notify, whose outcome is written back
} MappingPublish;

// ---- writing the application's row: values and moments ----

typedef enum MappingMoment {
    MOMENT_CLAIMED,     // a relay has claimed it (the row is no longer pending)
    MOMENT_PUBLISHED,   // JetStream has stored it
    MOMENT_UNPUBLISHED, // it could not be published and is given back
    MOMENT_REFUSED,     // it does not fit its mapping; default for requests: MOMENT_FAILED
    MOMENT_RETRYING,    // an attempt failed and will be retried
    MOMENT_SENT,
    MOMENT_FAILED, // also suppressed, bounced, expired
    MOMENT_COUNT
} MappingMoment;

const char *moment_name(MappingMoment moment); // "claimed" ...

typedef enum AssignKind {
    ASSIGN_NULL,
    ASSIGN_LITERAL,   // text, number, true or false: `text` in quotes, of the column's type
    ASSIGN_NOW,       // "@now": the database's clock
    ASSIGN_AT,        // "@at": when it happened (of a status event); elsewhere as "@now"
    ASSIGN_REASON,    // "@reason"; cut to the column's length
    ASSIGN_ATTEMPTS,  // "@attempts": attempts that have failed so far
    ASSIGN_INCREMENT, // "@increment": the column plus one
} AssignKind;

typedef struct Assign {
    Str column;
    AssignKind kind;
    Str text; // ASSIGN_LITERAL
} Assign;

typedef struct Assigns {
    const Assign *items;
    size_t count; // 0: the moment writes nothing
} Assigns;

const Assign *assigns_find(const Assigns *assigns, Str column); // NULL: no assignment writes it

// ---- reading the row: sources of values ----

// The source of a value of the message: a constant, or a column, optionally with a path into its
// JSON and a transformation.
typedef struct Source Source;
struct Source {
    bool given; // false: the mapping does not have this field
    bool constant;
    Str value;                  // constant
    int column;                 // index into Mapping.columns
    Str path[MAPPING_PATH_MAX]; // members, outermost first
    int path_count;
    int member;     // index into Mapping.members; -1: no path
    Str fallback;   // "default"; ptr NULL: none
    Str before;     // cut at its first occurrence; empty: no cut
    Str after;      // then keep the text after its last occurrence; empty: no cut
    json_t *names;  // then replaced by its entry in this table, if there is one; NULL: none
    json_t *starts; // {"<": "outbox-html"}: the value of the first key with which the (trimmed)
                    // text begins, else `otherwise`; NULL: none
    Str otherwise;
    const struct Source *with;  // "with": its text, behind a space, is part of what `names` knows
    const struct Source *other; // "else": what counts when the text is not in `names`; NULL: none
    bool snake; // "keys": "snake_case": member names of the object become orderId -> order_id
};

typedef enum MappingField {
    FIELD_TENANT,
    // event
    FIELD_TYPE,
    FIELD_DATA,
    FIELD_TIME,
    FIELD_ID,
    FIELD_TRACEPARENT,
    // request
    FIELD_TO,
    FIELD_TO_NAME,
    FIELD_CHANNEL,
    FIELD_TEMPLATE,
    FIELD_TEMPLATE_VERSION,
    FIELD_LOCALE,
    FIELD_CATEGORY,
    FIELD_PRIORITY,
    FIELD_CORRELATION_ID,
    FIELD_RECIPIENT_ID,
    FIELD_SCHEDULED_FOR,
    FIELD_EXPIRES_AT,
    FIELD_CONSENT_SOURCE,
    FIELD_CONSENT_AT,
    FIELD_COUNT
} MappingField;

const char *field_name(MappingField field); // "tenant" ...
// Why the value is not a template's key, a channel, a category or a priority ("is not a channel");
// NULL: it is valid, or the field is another one.
const char *field_misfit(MappingField field, Str word);

typedef struct Variable {
    Str name;
    Source source;
} Variable;

// A table that records how far a group of rows is published (MassTransit's outbox_state).
typedef struct MappingState {
    Str table;
    Str keys[2];   // its columns
    Str rows[2];   // the outbox table's columns that they equal
    int key_count; // 1 or 2
    Str position;  // its column with the last published row's position
    Str delivered; // its column that is set to now; empty: none
} MappingState;

typedef struct MappingColumn {
    Str name;
    Str field;  // "fields.to": the member that reads it, for messages
    bool whole; // some source reads it without a path
    Str json;   // as `field`: the member that needs JSON in it; empty: none
} MappingColumn;

typedef struct MappingKeep {
    MappingMoment moment; // rows that had this moment ...
    int64_t age_s;        // ... this long ago are deleted
    Str column;           // the moment's first "@at", else its first "@now"
} MappingKeep;

typedef struct Mapping {
    Str name;
    Str table; // "public.email_outbox"
    MappingPublish publish;
    Str id; // the primary key's column (one that an index finds)
    Str order_by[MAPPING_ORDER_MAX];
    int order_count;
    Str ordering_key; // column; empty: rows are independent
    Str created_at;   // column; empty: none
    Str position;     // monotonic whole-number column; empty: none
    Assigns pending;  // ASSIGN_NULL and ASSIGN_LITERAL: all must hold; none with states
    MappingState states[MAPPING_STATES_MAX];
    int state_count;
    Source fields[FIELD_COUNT];
    Source all;          // request: "variables": "payload", one JSON object; not given: by name
    Variable *variables; // request: "variables": {...}
    size_t variable_count;
    MappingColumn columns[MAPPING_COLUMNS_MAX]; // returned by claim and adopt, without repeats
    int column_count;
    // Sources with a path, each path once. Of a jsonb column Postgres extracts the member, and the
    // column as a whole is not read.
    const Source *members[MAPPING_MEMBERS_MAX];
    int member_count;
    Assigns moments[MOMENT_COUNT];
    MappingKeep keep[MOMENT_COUNT];
    int keep_count;
    uint32_t retry_wait_s[LADDER_MAX]; // requests: before retry 1, 2 ...
    size_t retry_waits;                // with max_attempts 0: the installation's
    uint32_t max_attempts;
    int64_t backlog_alert; // default 1000
    Arena *arena;          // owns all of it
    json_t *root;
} Mapping;

// ERROR_CONFIG names the member and the expected value: "moments.sent.status: ...". The caller
// frees it.
Mapping *mapping_read(Str json, Error *err);
void mapping_free(Mapping *mapping); // NULL-safe
// The moment makes a pending row no longer pending.
bool mapping_takes_out(const Mapping *mapping, MappingMoment moment);
// A request that is being retried shows its row as pending.
bool mapping_retries_as_pending(const Mapping *mapping);
// The moment of a rejected row: `refused`, or for requests without it `failed`.
MappingMoment mapping_refusal(const Mapping *mapping);
static inline bool mapping_is_request(const Mapping *m)
{
    return m->publish == MAPPING_REQUEST;
}
// The source reads only so many characters from the text's start, after leading white space; 0: all
// of them.
size_t mapping_source_head(const Source *source);
