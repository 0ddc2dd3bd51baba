// SPDX-License-Identifier: Apache-2.0
#include "common/outbox/sql/relay_check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/outbox/sql/sql_text.h"

enum { WANTED_MAX = 256, SQL_MAX = 256 * 1024 };

// Columns of check's rows, which are in the order of `wanted`.
enum {
    C_HAS_TABLE,
    C_TYPE, // NULL: the column is missing
    C_BASE, // name of the base type
    C_CATEGORY,
    C_SELECT,
    C_UPDATE,
    C_INSERT,
    C_DELETE,
    C_USAGE, // of the schema
    C_NOT_NULL,
    C_UNIQUE, // by a unique index on it alone
};

// ---- requirements ----

static void want(RelaySql *sql, Wanted wanted)
{
    assert(sql->wanted_count < WANTED_MAX);
    sql->wanted[sql->wanted_count++] = wanted;
}

static void want_column(RelaySql *sql, Str column, const char *field, WantedType type)
{
    if (column.len > 0) {
        want(
            sql, (Wanted){
                     .table = sql->mapping->table,
                     .column = column,
                     .field = arena_str(sql->arena, str_from(field)),
                     .rights = "",
                     .type = type});
    }
}

static WantedType type_of_assign(const Assign *assign)
{
    switch (assign->kind) {
    case ASSIGN_NOW:
    case ASSIGN_AT:
        return WANTED_TIME;
    case ASSIGN_REASON:
        return WANTED_TEXT;
    case ASSIGN_ATTEMPTS:
    case ASSIGN_INCREMENT:
        return WANTED_NUMBER;
    case ASSIGN_NULL:
    case ASSIGN_LITERAL:
        break;
    }
    return WANTED_ANY;
}

static void want_assigns(
    RelaySql *sql, const Assigns *assigns, const char *path, const char *rights)
{
    for (size_t i = 0; i < assigns->count; i++) {
        const Assign *a = &assigns->items[i];
        want(
            sql,
            (Wanted){
                .table = sql->mapping->table,
                .column = a->column,
                .field = str_from(arena_printf(sql->arena, "%s.%.*s", path, STR_ARG(a->column))),
                .rights = rights,
                .type = type_of_assign(a)});
    }
}

static void want_state(RelaySql *sql, const MappingState *s, int index)
{
    const char *at = arena_printf(sql->arena, "states.%d", index);
    for (int i = 0; i < s->key_count; i++) {
        const char *key = arena_printf(sql->arena, "%s.key", at);
        want_column(sql, s->rows[i], key, WANTED_ANY);
        want(
            sql,
            (Wanted){
                .table = s->table, .column = s->keys[i], .field = str_from(key), .rights = ""});
    }
    want(
        sql, (Wanted){
                 .table = s->table,
                 .column = s->position,
                 .field = str_from(arena_printf(sql->arena, "%s.position", at)),
                 .rights = "w",
                 .type = WANTED_WHOLE});
    if (s->delivered.len > 0) {
        want(
            sql, (Wanted){
                     .table = s->table,
                     .column = s->delivered,
                     .field = str_from(arena_printf(sql->arena, "%s.delivered", at)),
                     .rights = "w",
                     .type = WANTED_TIME});
    }
}

static void want_ours(RelaySql *sql)
{
    static const struct {
        const char *table;
        const char *column;
        const char *rights;
    } ours[] = {
        {"stentor_outbox.claims", "claim_id", "wid"},
        {"stentor_outbox.requests", "notification_id", "wid"},
        {"stentor_outbox.rejected_rows", "row_key", "wid"},
        {"stentor_outbox.published", "row_key", "id"},
        {"stentor_outbox.pending_feedback", "row_key", "wid"},
        {"stentor_outbox.positions", "sequence", "wi"},
        {"stentor_outbox.initialised_mappings", "mapping", "i"},
        {"stentor_outbox.source", "id", ""},
    };
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        want(
            sql, (Wanted){
                     .table = str_from(ours[i].table),
                     .column = str_from(ours[i].column),
                     .field = STR_EMPTY,
                     .rights = ours[i].rights});
    }
    if (mapping_is_request(sql->mapping) && mapping_retries_as_pending(sql->mapping)) {
        want(
            sql, (Wanted){
                     .table = STR("stentor_outbox.requests"),
                     .column = STR("row_xmin"),
                     .field = STR_EMPTY,
                     .rights = "w"});
    }
}

static void want_all(RelaySql *sql)
{
    const Mapping *m = sql->mapping;
    // FOR UPDATE needs the right to update; `keep` needs the right to delete.
    want(
        sql, (Wanted){
                 .table = m->table,
                 .column = m->id,
                 .field = STR("id"),
                 .rights = m->keep_count > 0 ? "d" : ""});
    for (int i = 0; i < m->order_count; i++) {
        want_column(sql, m->order_by[i], "order_by", WANTED_ANY);
    }
    want_column(sql, m->ordering_key, "ordering_key", WANTED_ANY);
    want_column(sql, m->created_at, "created_at", WANTED_TIME);
    want_column(sql, m->position, "position", WANTED_WHOLE);
    want_assigns(sql, &m->pending, "pending", m->moments[MOMENT_CLAIMED].count > 0 ? "w" : "");
    for (int i = 0; i < m->state_count; i++) {
        want_state(sql, &m->states[i], i);
    }
    for (int i = 0; i < m->column_count; i++) {
        want_column(
            sql, m->columns[i].name, arena_cstr(sql->arena, m->columns[i].field), WANTED_ANY);
        if (m->columns[i].json.len > 0) {
            want_column(
                sql, m->columns[i].name, arena_cstr(sql->arena, m->columns[i].json), WANTED_JSON);
        }
    }
    for (int i = 0; i < MOMENT_COUNT; i++) {
        want_assigns(
            sql, &m->moments[i],
            arena_printf(sql->arena, "moments.%s", moment_name((MappingMoment)i)), "w");
    }
    for (int i = 0; i < m->keep_count; i++) {
        const char *path = arena_printf(sql->arena, "keep.%s", moment_name(m->keep[i].moment));
        want_column(sql, m->keep[i].column, path, WANTED_TIME);
    }
    want_ours(sql);
}

// Not to_regclass for a name with a schema: it fails without the right to use the schema.
static const char *find_table(RelaySql *sql, Str table)
{
    ptrdiff_t dot = str_find(table, '.');
    if (dot < 0) {
        return arena_printf(
            sql->arena, "to_regclass(%s)::oid",
            sql_literal(sql->arena, str_from(sql_name(sql->arena, table))));
    }
    return arena_printf(
        sql->arena,
        "(SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = %s)",
        sql_literal(sql->arena, str_slice(table, 0, (size_t)dot)),
        sql_literal(sql->arena, str_slice(table, (size_t)dot + 1, table.len)));
}

void relay_check_build(RelaySql *sql)
{
    Buf out;
    sql->wanted = arena_array(sql->arena, WANTED_MAX, sizeof(Wanted));
    want_all(sql);
    buf_init(&out, SQL_MAX);
    buf_cstr(&out, "WITH w (n, rel, col) AS (VALUES ");
    for (size_t i = 0; i < sql->wanted_count; i++) {
        const Wanted *w = &sql->wanted[i];
        buf_printf(
            &out, "%s(%zu, %s, %s::text)", i == 0 ? "" : ", ", i, find_table(sql, w->table),
            sql_literal(sql->arena, w->column));
    }
    // A domain counts as its base type. The rights of a missing column are NULL.
    buf_cstr(
        &out,
        ") SELECT w.rel IS NOT NULL, format_type(a.atttypid, a.atttypmod), b.typname::text,"
        " y.typcategory::text, has_column_privilege(w.rel, a.attnum, 'SELECT'),"
        " has_column_privilege(w.rel, a.attnum, 'UPDATE'), has_table_privilege(w.rel, 'INSERT'),"
        " has_table_privilege(w.rel, 'DELETE'), (SELECT has_schema_privilege(c.relnamespace, "
        "'USAGE')"
        " FROM pg_class AS c WHERE c.oid = w.rel), a.attnotnull,"
        " EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = w.rel AND i.indisunique"
        " AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)"
        " FROM w LEFT JOIN pg_attribute AS a ON a.attrelid = w.rel AND a.attname = w.col"
        " AND a.attnum > 0 AND NOT a.attisdropped"
        " LEFT JOIN pg_type AS y ON y.oid = a.atttypid"
        " LEFT JOIN pg_type AS b ON b.oid = CASE WHEN y.typtype = 'd' THEN y.typbasetype"
        " ELSE y.oid END ORDER BY w.n");
    assert(!out.full);
    sql->check = (DbStatement){"outbox_check", arena_cstr(sql->arena, buf_view(&out))};
    buf_done(&out);
}

const Wanted *relay_wanted(const RelaySql *sql, Str table, Str column)
{
    for (size_t i = 0; i < sql->wanted_count; i++) {
        if (str_eq(sql->wanted[i].table, table) && str_eq(sql->wanted[i].column, column)) {
            return &sql->wanted[i];
        }
    }
    assert(false && "a column that nothing wants");
    return NULL;
}

// ---- findings ----

static bool is_one_of(Str text, const char *words)
{
    Str rest = str_from(words);
    Str word = STR_EMPTY;
    while (str_split(&rest, ' ', &word)) {
        if (str_eq(word, text)) {
            return true;
        }
    }
    return false;
}

static bool type_fits(WantedType type, Str base, Str category, const char **ret_wanted)
{
    static const char *const words[] = {
        [WANTED_ANY] = "",
        [WANTED_WHOLE] = "a whole number",
        [WANTED_NUMBER] = "a number",
        [WANTED_TIME] = "a time",
        [WANTED_TEXT] = "text",
        [WANTED_JSON] = "JSON or text"};
    *ret_wanted = words[type];
    switch (type) {
    case WANTED_ANY:
        break;
    case WANTED_WHOLE:
        return is_one_of(base, "int2 int4 int8");
    case WANTED_NUMBER:
        return str_eq(category, STR("N"));
    case WANTED_TIME:
        return is_one_of(base, "timestamptz timestamp date");
    case WANTED_TEXT:
        return str_eq(category, STR("S"));
    case WANTED_JSON:
        // Arrays, booleans, times, enumerations and numbers are not JSON.
        return !is_one_of(category, "A B D E G I N R T V");
    }
    return true;
}

static const char *missing_right(const Wanted *w, const PGresult *check, int row)
{
    static const struct {
        char right;
        int column;
        const char *name;
    } rights[] = {{'w', C_UPDATE, "UPDATE"}, {'i', C_INSERT, "INSERT"}, {'d', C_DELETE, "DELETE"}};
    if (db_get_int(check, row, C_USAGE) == 0) {
        return "USAGE of the schema, to read";
    }
    if (db_get_int(check, row, C_SELECT) == 0) {
        return "SELECT";
    }
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        if (strchr(w->rights, rights[i].right) != NULL &&
            db_get_int(check, row, rights[i].column) == 0) {
            return rights[i].name;
        }
    }
    return NULL;
}

// Two rows with one id would be one message.
static const char *why_no_id(const Wanted *w, const PGresult *check, int row)
{
    if (!str_eq(w->field, STR("id"))) {
        return NULL;
    }
    if (db_get_int(check, row, C_NOT_NULL) == 0) {
        return "may be NULL";
    }
    return db_get_int(check, row, C_UNIQUE) == 0 ? "has no unique index of its own" : NULL;
}

// Empty: no problem.
static Str problem_of(const Wanted *w, const PGresult *check, int row, Arena *arena)
{
    Str field = w->field.len == 0
                    ? STR("of Stentor")
                    : str_from(arena_printf(arena, "mapping field " STR_FMT, STR_ARG(w->field)));
    const char *wanted = "";
    if (db_get_int(check, row, C_HAS_TABLE) == 0 || db_is_null(check, row, C_TYPE)) {
        const char *hint =
            w->field.len == 0 ? " (HINT: stentor outbox install --mapping FILE)" : "";
        return str_from(
            db_get_int(check, row, C_HAS_TABLE) == 0
                ? arena_printf(
                      arena, "table '%.*s' is missing (%.*s)%s", STR_ARG(w->table), STR_ARG(field),
                      hint)
                : arena_printf(
                      arena, "column '%.*s' of table '%.*s' is missing (%.*s)%s",
                      STR_ARG(w->column), STR_ARG(w->table), STR_ARG(field), hint));
    }
    if (!type_fits(
            w->type, db_get_text(check, row, C_BASE), db_get_text(check, row, C_CATEGORY),
            &wanted)) {
        return str_from(arena_printf(
            arena, "column '%.*s' of table '%.*s' is %.*s, not %s (%.*s)", STR_ARG(w->column),
            STR_ARG(w->table), STR_ARG(db_get_text(check, row, C_TYPE)), wanted, STR_ARG(field)));
    }
    const char *no_id = why_no_id(w, check, row);
    if (no_id != NULL) {
        return str_from(arena_printf(
            arena, "column '%.*s' of table '%.*s' %s (%.*s)", STR_ARG(w->column), STR_ARG(w->table),
            no_id, STR_ARG(field)));
    }
    const char *right = missing_right(w, check, row);
    return right == NULL ? STR_EMPTY
                         : str_from(arena_printf(
                               arena, "no right to %s column '%.*s' of table '%.*s' (%.*s)", right,
                               STR_ARG(w->column), STR_ARG(w->table), STR_ARG(field)));
}

// A missing table is reported once, not for each of its columns.
static bool is_reported_missing(const RelaySql *sql, const PGresult *check, size_t index)
{
    bool is_first = true;
    for (size_t i = 0; i < index; i++) {
        is_first = is_first && !str_eq(sql->wanted[i].table, sql->wanted[index].table);
    }
    return !is_first && db_get_int(check, (int)index, C_HAS_TABLE) == 0;
}

static bool is_reported(const Str *problems, size_t count, Str problem)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(problems[i], problem)) {
            return true;
        }
    }
    return false;
}

size_t relay_sql_problems(
    const RelaySql *sql, const PGresult *check, Arena *arena, Str **ret_problems)
{
    assert((size_t)db_rows(check) == sql->wanted_count);
    Str *problems = arena_array(arena, sql->wanted_count, sizeof *problems);
    size_t count = 0;
    for (size_t i = 0; i < sql->wanted_count; i++) {
        if (is_reported_missing(sql, check, i)) {
            continue;
        }
        Str problem = problem_of(&sql->wanted[i], check, (int)i, arena);
        if (problem.len > 0 && !is_reported(problems, count, problem)) {
            problems[count++] = problem;
        }
    }
    *ret_problems = problems;
    return count;
}

static ColumnKind kind_of(Str base, Str category)
{
    if (str_eq(base, STR("jsonb"))) {
        return COLUMN_JSONB;
    }
    if (str_eq(base, STR("json"))) {
        return COLUMN_JSON;
    }
    if (str_eq(category, STR("N"))) {
        return is_one_of(base, "int2 int4 int8 numeric float4 float8") ? COLUMN_NUMBER
                                                                       : COLUMN_TEXT;
    }
    return str_eq(category, STR("B")) ? COLUMN_BOOL : COLUMN_TEXT;
}

static void keep_types(RelaySql *sql, const PGresult *check)
{
    for (size_t i = 0; i < sql->wanted_count; i++) {
        Wanted *w = &sql->wanted[i];
        Str base = db_get_text(check, (int)i, C_BASE);
        w->found = arena_str(sql->arena, db_get_text(check, (int)i, C_TYPE));
        w->kind = kind_of(base, db_get_text(check, (int)i, C_CATEGORY));
        w->is_timestamptz = str_eq(base, STR("timestamptz"));
        w->is_timestamp = str_eq(base, STR("timestamp"));
    }
    for (int i = 0; i < sql->mapping->column_count; i++) {
        sql->kinds[i] = relay_wanted(sql, sql->mapping->table, sql->mapping->columns[i].name)->kind;
    }
}

static bool same_types(const RelaySql *sql, const PGresult *check)
{
    for (size_t i = 0; i < sql->wanted_count; i++) {
        if (!str_eq(sql->wanted[i].found, db_get_text(check, (int)i, C_TYPE))) {
            return false;
        }
    }
    return true;
}

bool relay_sql_bind(RelaySql *sql, const PGresult *check, Error *err)
{
    Arena *arena = arena_new(0);
    Str *problems = NULL;
    size_t count = relay_sql_problems(sql, check, arena, &problems);
    bool ok = count == 0 || error_set(err, ERROR_CONFIG, "%.*s", STR_ARG(problems[0]));
    arena_free(arena);
    if (ok && !same_types(sql, check)) {
        keep_types(sql, check);
        relay_sql_generate(sql);
    }
    return ok;
}
