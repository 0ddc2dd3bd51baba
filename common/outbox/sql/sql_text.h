// SPDX-License-Identifier: Apache-2.0
// Parts of generated SQL. Private to relay_*.c. Law: names and values of the mapping come into SQL
// only through sql_name, sql_table and sql_literal.
#pragma once

#include "common/outbox/sql/relay_check.h"

const char *sql_name(Arena *arena, Str name);    // "name", quotes doubled
const char *sql_table(Arena *arena, Str table);  // "schema"."table"
const char *sql_literal(Arena *arena, Str text); // 'text', or E'...' when it has a backslash

// The expressions for @at, @reason and @attempts in a statement; NULL: @at is now(), the column
// keeps its value.
typedef struct SqlValues {
    const char *at;
    const char *reason;
    const char *attempts;
} SqlValues;

// "status" = 'SENT', "sent_at" = n.at ... of the table aliased t.
const char *sql_assigns(const RelaySql *sql, const Assigns *assigns, const SqlValues *values);
// t."status" = 'PENDING' AND t."published_at" IS NULL; nulls are left out when `values_only`.
const char *sql_conditions(const RelaySql *sql, const Assigns *assigns, bool values_only);

// Builds all statements once the types are known.
void relay_sql_generate(RelaySql *sql);

// The parts of the statements of one mapping.
typedef struct SqlParts {
    const RelaySql *sql;
    Arena *arena;
    const char *mapping;  // 'memo'
    const char *table;    // "public"."email_outbox"
    const char *id;       // "id"
    const char *id_type;  // uuid
    const char *position; // t."sequence_number"::int8, or NULL::int8
    const char *created;  // t."created_at"::timestamptz, or NULL::timestamptz
    const char *order;    // t."meta_created_at", t."id"
    const char *pending;  // whole condition over t
    const char *plain;    // the part that concerns t alone; "true": none
    const char *untaken;  // AND not rejected, AND no request in progress ...
    const char *key;      // ordering key as text; NULL: none
    const char *fields;   // , t."a" AS f0, ...
    const char *names;    // , c.f0::text, ... and of the members v.m0 ...
    const char *members;  // the join of their values as v to c; "": there are none
    const char *size;     // stored bytes of the fields
} SqlParts;

// UPDATE ... FROM `source` AS n on its row_key, plus `where`; "" if the moment writes nothing.
const char *sql_moment_update(
    const SqlParts *p, MappingMoment moment, const SqlValues *values, const char *source,
    const char *where);

// Set for the rest of a transaction in which `mark` found locked rows.
#define SQL_HELD "stentor_outbox.held"

void relay_claim_sql(RelaySql *sql, const SqlParts *p);    // adopt, claim, note, renew, release
void relay_mark_sql(RelaySql *sql, const SqlParts *p);     // mark, give_back, refuse
void relay_feedback_sql(RelaySql *sql, const SqlParts *p); // feedback*; requests only
void relay_keep_sql(RelaySql *sql, const SqlParts *p);     // backlog, keep
void relay_retry_sql(RelaySql *sql, const SqlParts *p);    // scan, index_hint, failed, retry
