// SPDX-License-Identifier: Apache-2.0
#include "common/archive/unit/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/database.h"

// clang-format off
// A day's or a month's name by its length.
static const char discover_sql[] =
    "INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)"
    " SELECT k.kind || '/' || CASE p.class WHEN 'R' THEN 'record' WHEN 'S' THEN 'standard' ELSE 'brief' END || '/' ||"
    "  to_char(p.starts_at AT TIME ZONE 'UTC', CASE WHEN p.ends_at - p.starts_at <= interval '1 day' THEN 'YYYY-MM-DD' ELSE 'YYYY-MM' END),"
    "  k.kind, p.class, p.starts_at, p.ends_at, $1::int8"
    " FROM (SELECT DISTINCT kind FROM archive.kinds) k"
    " CROSS JOIN LATERAL (SELECT DISTINCT class, starts_at, ends_at FROM archive.partitions(k.kind)) p"
    " WHERE p.ends_at <= to_timestamp($2::int8 / 1000000.0) AND isfinite(p.starts_at) ON CONFLICT DO NOTHING";

static const char load_sql[] =
    "SELECT u.id, u.kind, u.class, (extract(epoch FROM u.starts_at) * 1000000)::int8, (extract(epoch FROM u.ends_at) * 1000000)::int8,"
    " u.generation, u.state, coalesce((extract(epoch FROM i.folded_at) * 1000000)::int8, 0),"
    " coalesce((extract(epoch FROM u.removed_at) * 1000000)::int8, 0), coalesce((extract(epoch FROM r.until) * 1000000)::int8, 0),"
    " EXISTS (SELECT FROM archive.objects o WHERE o.unit = u.id AND o.state IN ('written', 'verified')"
    "         AND (o.tier = 'warm' OR o.verified_at > (SELECT max(m.made_at) FROM archive.manifests m WHERE m.unit = u.id))),"
    " EXISTS (SELECT FROM archive.objects o WHERE o.unit = u.id AND o.state IN ('written', 'verified', 'replaced')"
    "         AND (u.state = 'expired' OR o.delete_after < now())),"
    " u.state = 'expired' AND NOT EXISTS (SELECT FROM archive.objects o WHERE o.unit = u.id"
    "         AND (o.state <> 'deleted' OR o.deleted_at > now() - interval '30 days')),"
    " (extract(epoch FROM u.state_at) * 1000000)::int8"
    " FROM archive.units u CROSS JOIN archive.installation i LEFT JOIN archive.restores r ON r.unit = u.id"
    " WHERE CASE WHEN $1::text IS NULL THEN u.finished_at IS NULL ELSE u.id = $1 END ORDER BY u.ends_at, u.id";

static const char tables_sql[] =
    "SELECT k.ordinal, k.parent, split_part(k.parent, '.', 2), k.late, quote_ident(k.time_column), quote_ident(k.id_column),"
    " (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname <> k.time_column, a.attname <> k.id_column,"
    "    array_position(x.indkey::int2[], a.attnum))"
    "  FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey::int2[])"
    "  WHERE x.indrelid = k.parent::regclass AND x.indisprimary)"
    " FROM archive.kinds k WHERE k.kind = $1 ORDER BY k.ordinal";
// clang-format on

bool units_discover(Archive *archive, int64_t now_us, int64_t *ret_new, Error *err)
{
    char now[24];
    (void)snprintf(now, sizeof now, "%lld", (long long)now_us);
    const char *params[] = {archive->epoch_text, now};
    AUTO(PGresult) rows = archive_ask(archive->pg, "units.discover", discover_sql, params, 2, err);
    if (rows == NULL) {
        return false;
    }
    *ret_new = 0;
    (void)str_to_i64(str_from(PQcmdTuples(rows)), ret_new);
    return true;
}

static bool take_unit(const PGresult *rows, int row, Arena *arena, Unit *ret, Error *err)
{
    *ret = (Unit){
        .id = arena_printf(arena, "%s", archive_text(rows, row, 0)),
        .kind = arena_printf(arena, "%s", archive_text(rows, row, 1)),
        .class = retention_class_from_code(archive_text(rows, row, 2)[0]),
        .starts_us = archive_number(rows, row, 3),
        .ends_us = archive_number(rows, row, 4),
        .generation = (int)archive_number(rows, row, 5)};
    unit_period(ret->starts_us, ret->ends_us, ret->period);
    ret->facts = (UnitFacts){
        .ends_us = ret->ends_us,
        .state_us = archive_number(rows, row, 13),
        .folded_us = archive_number(rows, row, 7),
        .removed_us = archive_number(rows, row, 8),
        .restore_us = archive_number(rows, row, 9),
        .warm = archive_text(rows, row, 10)[0] == 't',
        .deletable = archive_text(rows, row, 11)[0] == 't',
        .gone = archive_text(rows, row, 12)[0] == 't'};
    const char *state = archive_text(rows, row, 6);
    return unit_state_from_name(str_from(state), &ret->facts.state) ||
           error_set(
               err, ERROR_PERMANENT, "unit '%s' is '%s', which this version does not know", ret->id,
               state);
}

bool units_load(
    Archive *archive, const char *only, Arena *arena, Unit **ret, size_t *ret_count, Error *err)
{
    const char *params[] = {only};
    AUTO(PGresult) rows = archive_ask(archive->pg, "units.load", load_sql, params, 1, err);
    if (rows == NULL) {
        return false;
    }
    int count = PQntuples(rows);
    Unit *units = arena_array(arena, (size_t)count, sizeof *units);
    for (int i = 0; i < count; i++) {
        if (!take_unit(rows, i, arena, &units[i], err)) {
            return false;
        }
    }
    *ret = units;
    *ret_count = (size_t)count;
    return true;
}

bool units_find(Archive *archive, const char *id, Arena *arena, Unit *ret, Error *err)
{
    Unit *found = NULL;
    size_t count = 0;
    if (!units_load(archive, id, arena, &found, &count, err)) {
        return false;
    }
    if (count == 0) {
        return error_set(
            err, ERROR_CONFIG, "there is no unit '%s' (HINT: stentor archive list)", id);
    }
    *ret = found[0];
    return true;
}

bool units_tables(
    Archive *archive, const char *kind, Arena *arena, UnitTable *ret, size_t *ret_count, Error *err)
{
    const char *params[] = {kind};
    AUTO(PGresult) rows = archive_ask(archive->pg, "units.tables", tables_sql, params, 1, err);
    if (rows == NULL) {
        return false;
    }
    int count = PQntuples(rows);
    if (count == 0 || count > UNIT_TABLES_MAX) {
        return error_set(err, ERROR_PERMANENT, "kind '%s' has %d tables", kind, count);
    }
    for (int i = 0; i < count; i++) {
        ret[i] = (UnitTable){
            .ordinal = (int)archive_number(rows, i, 0),
            .parent = arena_printf(arena, "%s", archive_text(rows, i, 1)),
            .stem = arena_printf(arena, "%s", archive_text(rows, i, 2)),
            .late = arena_printf(arena, "%s", archive_text(rows, i, 3)),
            .time_column = arena_printf(arena, "%s", archive_text(rows, i, 4)),
            .id_column = arena_printf(arena, "%s", archive_text(rows, i, 5)),
            .order = arena_printf(arena, "%s", archive_text(rows, i, 6))};
    }
    *ret_count = (size_t)count;
    return true;
}

const UnitTable *units_table(const UnitTable *tables, size_t count, int ordinal)
{
    for (size_t i = 0; i < count; i++) {
        if (tables[i].ordinal == ordinal) {
            return &tables[i];
        }
    }
    return NULL;
}

bool units_move(Archive *archive, const Unit *unit, UnitState from, UnitState to, Error *err)
{
    assert(unit_state_allows(from, to));
    const char *params[] = {
        unit->id, unit_state_name(from), unit_state_name(to), archive->epoch_text};
    return archive_change(
        archive->pg, "units.move",
        "UPDATE archive.units SET state = $3, failed_at = NULL, failure = NULL WHERE id = $1 AND "
        "state = $2 AND owner_epoch = $4",
        params, 4, err);
}

bool units_note(Archive *archive, const char *id, const Error *failure, Error *err)
{
    const char *params[] = {id, failure != NULL ? failure->text : NULL, archive->epoch_text};
    return archive_do(
        archive->pg, "units.note",
        "UPDATE archive.units SET failure = $2::text, failed_at = CASE WHEN $2::text IS NULL "
        "THEN NULL ELSE now() END, failures = failures + ($2::text IS NOT NULL)::int "
        "WHERE id = $1 AND owner_epoch = $3::int8 AND (failure IS NOT NULL OR $2::text IS NOT "
        "NULL)",
        params, 3, err);
}
