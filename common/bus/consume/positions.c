// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/positions.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void name_statement(
    Positions *p, int slot, DbStatement *ret, const char *schema, const char *verb)
{
    snprintf(
        p->names[slot], sizeof p->names[slot], "positions_%s_%.32s_%.32s", verb, schema,
        p->projection);
    *ret = (DbStatement){.name = p->names[slot], .sql = p->sql[slot]};
}

void positions_init(
    Positions *out, const char *schema, const char *projection, const char *const *streams)
{
    // schema is the program's own constant; it is checked because it becomes SQL.
    assert(schema[0] != '\0' && strlen(schema) <= 40);
    assert(strspn(schema, "abcdefghijklmnopqrstuvwxyz_") == strlen(schema));
    *out = (Positions){.projection = projection};
    for (; *streams != NULL; streams++) {
        assert(out->count < POSITIONS_MAX);
        out->at[out->count++].stream = *streams;
    }
    snprintf(
        out->sql[0], sizeof out->sql[0],
        "SELECT stream, sequence, stream_created_at, stored_at FROM %s.positions "
        "WHERE projection = $1::text",
        schema);
    // A twin that inserted first: the primary key refuses.
    snprintf(
        out->sql[1], sizeof out->sql[1],
        "INSERT INTO %s.positions (projection, stream, sequence, stored_at, stream_created_at) "
        "SELECT $1::text, m.stream, m.sequence, m.at, m.created "
        "FROM unnest($2::text[], $3::int8[], $4::timestamptz[], $5::timestamptz[]) "
        "AS m (stream, sequence, at, created)",
        schema);
    // A twin that moved it: CASE without ELSE is NULL, and the column refuses NULL. The time
    // belongs to it: after a lost tail a twin may have come to the same sequence again.
    snprintf(
        out->sql[2], sizeof out->sql[2],
        "UPDATE %s.positions AS p SET stored_at = m.at, stream_created_at = m.created, "
        "sequence = CASE WHEN p.sequence = m.expected AND p.stored_at IS NOT DISTINCT FROM "
        "m.expected_at THEN m.sequence END FROM unnest($2::text[], $3::int8[], "
        "$4::timestamptz[], $5::timestamptz[], $6::int8[], $7::timestamptz[]) "
        "AS m (stream, sequence, at, created, expected, expected_at) "
        "WHERE p.projection = $1::text AND p.stream = m.stream RETURNING p.sequence",
        schema);
    name_statement(out, 0, &out->load, schema, "load");
    name_statement(out, 1, &out->insert, schema, "insert");
    name_statement(out, 2, &out->update, schema, "update");
}

void positions_add_load(Positions *p, DbTxn *txn)
{
    db_text(db_txn_add(txn, &p->load, NULL), str_from(p->projection));
}

static int find_row(const PGresult *rows, const char *stream)
{
    for (int row = 0; row < db_rows(rows); row++) {
        if (str_eq(db_get_text(rows, row, 0), str_from(stream))) {
            return row;
        }
    }
    return -1;
}

void positions_read(Positions *p, const PGresult *rows)
{
    for (size_t i = 0; i < p->count; i++) {
        int row = find_row(rows, p->at[i].stream);
        p->at[i].known = row >= 0;
        p->at[i].stored = row >= 0 ? (uint64_t)db_get_int(rows, row, 1) : 0;
        p->at[i].created_us = row >= 0 ? db_get_time(rows, row, 2) : 0;
        p->at[i].stored_created_us = p->at[i].created_us;
        p->at[i].stored_at_us = row >= 0 ? db_get_time(rows, row, 3) : 0;
        p->at[i].folded = p->at[i].stored;
        p->at[i].folded_at_us = p->at[i].stored_at_us;
        p->at[i].read = p->at[i].stored;
        p->at[i].read_at_us = p->at[i].stored_at_us;
    }
}

bool positions_moved(const Positions *p, const PGresult *rows)
{
    for (size_t i = 0; i < p->count; i++) {
        int row = find_row(rows, p->at[i].stream);
        if ((row >= 0 ? (uint64_t)db_get_int(rows, row, 1) : 0) != p->at[i].stored ||
            (row >= 0 ? db_get_time(rows, row, 3) : 0) != p->at[i].stored_at_us) {
            return true;
        }
    }
    return false;
}

// Backwards too: after a lost tail the same log has fewer messages. Or the server reports another
// creation time for the same stream.
static bool has_moved(const Position *at)
{
    return at->folded != at->stored || at->folded_at_us != at->stored_at_us ||
           (at->known && at->created_us != at->stored_created_us);
}

static bool moves(const Position *at, bool known)
{
    return at->known == known && has_moved(at);
}

static size_t count_moves(const Positions *p, bool known)
{
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        count += moves(&p->at[i], known) ? 1 : 0;
    }
    return count;
}

static void add_statement(Positions *p, DbTxn *txn, bool known)
{
    DbParams *params = db_txn_add(txn, known ? &p->update : &p->insert, &p->update_index);
    db_text(params, str_from(p->projection));
    DbArray *streams = db_array(params, DB_TEXT);
    DbArray *sequences = db_array(params, DB_I64);
    DbArray *times = db_array(params, DB_TIME);
    DbArray *created = db_array(params, DB_TIME);
    DbArray *last = known ? db_array(params, DB_I64) : NULL;
    DbArray *last_times = known ? db_array(params, DB_TIME) : NULL;
    for (size_t i = 0; i < p->count; i++) {
        const Position *at = &p->at[i];
        if (!moves(at, known)) {
            continue;
        }
        db_push_text(streams, str_from(at->stream));
        db_push_int(sequences, (int64_t)at->folded);
        db_push_time(times, at->folded_at_us);
        db_push_time(created, at->created_us);
        if (known) {
            db_push_int(last, (int64_t)at->stored);
            db_push_time(last_times, at->stored_at_us);
        }
    }
}

bool positions_pending(const Positions *p)
{
    return count_moves(p, true) + count_moves(p, false) > 0;
}

void positions_add_moves(Positions *p, DbTxn *txn)
{
    p->updates = count_moves(p, true);
    if (count_moves(p, false) > 0) {
        add_statement(p, txn, false);
    }
    if (p->updates > 0) {
        add_statement(p, txn, true);
    }
}

bool positions_all_moved(const Positions *p, const DbTxn *txn)
{
    return p->updates == 0 || (size_t)db_rows(db_txn_result(txn, p->update_index)) == p->updates;
}

void positions_commit(Positions *p)
{
    for (size_t i = 0; i < p->count; i++) {
        Position *at = &p->at[i];
        at->known = at->known || has_moved(at);
        at->stored = at->folded;
        at->stored_at_us = at->folded_at_us;
        at->stored_created_us = at->created_us;
    }
}
