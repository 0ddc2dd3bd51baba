// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_hold.h"

#include <inttypes.h>
#include <stdlib.h>

// clang-format off
static const char SET[] =
    "SELECT erasure.set_hold(nullif($1, ''), CASE WHEN $2 <> '' THEN decode($2, 'hex') END, nullif($3, ''), $4, $5, $6::timestamptz)";
static const char RELEASE[] = "SELECT erasure.release_hold($1::bigint, $2)";
#define TIME(column) "coalesce(to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), '')"
static const char LIST[] =
    "SELECT id, coalesce(tenant, ''), coalesce(encode(subject, 'hex'), ''), coalesce(unit, ''), ground, held_by, " TIME("held_at") ", "
    TIME("until") ", " TIME("released_at") " FROM archive.holds"
    " WHERE $1::bool OR (released_at IS NULL AND (until IS NULL OR until > now())) ORDER BY id";
// clang-format on

static bool note(
    Session *session, const ErasureHold *hold, const char *action, const char *by, int64_t at_us,
    Arena *arena, Error *err)
{
    AuditDetail details[] = {
        {"hold", arena_printf(arena, "%" PRId64, hold->id)}, {"unit", hold->unit}};
    AuditNote entry = {
        .kind = AUDIT_HOLD,
        .tenant = hold->tenant[0] != '\0' ? hold->tenant : "platform",
        .action = action,
        .actor = by,
        .target = hold->subject[0] != '\0' ? hold->subject : hold->unit,
        .ground = hold->ground,
        .program = "stentor",
        .details = details,
        .detail_count = sizeof details / sizeof *details,
        .at_us = at_us};
    return session_audit(session, &entry, NULL, err);
}

bool erasure_hold_set(
    PGconn *pg, Session *session, const ErasureHold *hold, int64_t now_us, Arena *arena,
    int64_t *ret_id, Error *err)
{
    const char *params[] = {hold->tenant, hold->subject, hold->unit,
                            hold->ground, hold->by,      hold->until};
    if (!note(session, hold, "hold.set", hold->by, now_us, arena, err)) {
        return false;
    }
    AUTO(PGresult) made = erasure_pg_query(pg, SET, 6, params, err);
    if (made == NULL) {
        return false;
    }
    *ret_id = strtoll(PQgetvalue(made, 0, 0), NULL, 10);
    return true;
}

bool erasure_hold_list(
    PGconn *pg, bool all, Arena *arena, const ErasureHold **ret, size_t *ret_count, Error *err)
{
    const char *params[] = {all ? "true" : "false"};
    AUTO(PGresult) rows = erasure_pg_query(pg, LIST, 1, params, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    ErasureHold *holds = arena_array(arena, count + 1, sizeof *holds);
    for (size_t i = 0; i < count; i++) {
        const char *text[9];
        for (int column = 0; column < 9; column++) {
            text[column] = arena_cstr(arena, str_from(PQgetvalue(rows, (int)i, column)));
        }
        holds[i] = (ErasureHold){
            .id = strtoll(text[0], NULL, 10),
            .tenant = text[1],
            .subject = text[2],
            .unit = text[3],
            .ground = text[4],
            .by = text[5],
            .since = text[6],
            .until = text[7],
            .released = text[8]};
    }
    *ret = holds;
    *ret_count = count;
    return true;
}

static bool find_hold(PGconn *pg, int64_t id, Arena *arena, const ErasureHold **ret, Error *err)
{
    const ErasureHold *holds = NULL;
    size_t count = 0;
    *ret = NULL;
    if (!erasure_hold_list(pg, true, arena, &holds, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (holds[i].id == id && holds[i].released[0] == '\0') {
            *ret = &holds[i];
        }
    }
    return true;
}

bool erasure_hold_release(
    PGconn *pg, Session *session, int64_t id, const char *by, int64_t now_us, Arena *arena,
    bool *ret_found, Error *err)
{
    const ErasureHold *hold = NULL;
    *ret_found = false;
    if (!find_hold(pg, id, arena, &hold, err) || hold == NULL) {
        return err->kind == ERROR_NONE;
    }
    if (!note(session, hold, "hold.released", by, now_us, arena, err)) {
        return false;
    }
    const char *params[] = {arena_printf(arena, "%" PRId64, id), by};
    AUTO(PGresult) done = erasure_pg_query(pg, RELEASE, 2, params, err);
    *ret_found = done != NULL && PQgetvalue(done, 0, 0)[0] == 't';
    return done != NULL;
}
