// SPDX-License-Identifier: Apache-2.0
#include "common/outbox/sql/relay_sql.h"

#include "common/outbox/sql/sql_text.h"

RelaySql *relay_sql_new(const Mapping *mapping)
{
    Arena *arena = arena_new(16 * 1024);
    RelaySql *sql = arena_zalloc(arena, sizeof *sql);
    sql->mapping = mapping;
    sql->arena = arena;
    relay_check_build(sql);
    return sql;
}

void relay_sql_free(RelaySql *sql)
{
    if (sql != NULL) {
        arena_free(sql->arena);
    }
}

// ---- mappings with states (MassTransit) ----

// The row belongs to this state.
static const char *state_given(const SqlParts *p, int index)
{
    const MappingState *s = &p->sql->mapping->states[index];
    const char *text = "";
    for (int i = 0; i < s->key_count; i++) {
        text = arena_printf(
            p->arena, "%s%st.%s IS NOT NULL", text, i == 0 ? "" : " AND ",
            sql_name(p->arena, s->rows[i]));
    }
    return text;
}

static const char *state_key(const SqlParts *p, int index)
{
    const MappingState *s = &p->sql->mapping->states[index];
    const char *text = arena_printf(p->arena, "'%d'", index);
    for (int i = 0; i < s->key_count; i++) {
        text =
            arena_printf(p->arena, "%s || '/' || t.%s::text", text, sql_name(p->arena, s->rows[i]));
    }
    return text;
}

// A state's position does not tell which rows are published: numbers are drawn before the
// transaction commits, so a row may appear below a published one. Each published row is recorded.
static void fill_states(SqlParts *p)
{
    p->key = "CASE";
    for (int i = 0; i < p->sql->mapping->state_count; i++) {
        p->key = arena_printf(
            p->arena, "%s WHEN %s THEN %s", p->key, state_given(p, i), state_key(p, i));
    }
    p->key = arena_printf(p->arena, "%s END", p->key);
    p->pending = arena_printf(
        p->arena,
        "NOT EXISTS (SELECT FROM stentor_outbox.published AS u WHERE u.mapping = %s"
        " AND u.row_key = t.%s::text OFFSET 0)",
        p->mapping, p->id);
    p->plain = "true";
}

// ---- parts of all mappings ----

// A column of the claim's answer, where the values are called f0, f1 ...
static const char *column_text(const SqlParts *p, int index)
{
    if (p->sql->kinds[index] == COLUMN_JSONB && !p->sql->mapping->columns[index].whole) {
        return "NULL::text";
    }
    const Wanted *w =
        relay_wanted(p->sql, p->sql->mapping->table, p->sql->mapping->columns[index].name);
    if (w->is_timestamptz || w->is_timestamp) {
        return arena_printf(
            p->arena, "to_char(c.f%d%s, 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", index,
            w->is_timestamptz ? " AT TIME ZONE 'UTC'" : "");
    }
    return arena_printf(p->arena, "c.f%d::text", index);
}

static bool of_jsonb(const SqlParts *p, const Source *member)
{
    return p->sql->kinds[member->column] == COLUMN_JSONB; // else the relay reads the column itself
}

static const char *member_value(const SqlParts *p, const Source *source)
{
    const char *value = arena_printf(p->arena, "c.f%d", source->column);
    for (int i = 0; i < source->path_count; i++) {
        value = arena_printf(p->arena, "%s -> %s", value, sql_literal(p->arena, source->path[i]));
    }
    return value;
}

// The start of a text, if only that decides; of pure white space one character. ltrim costs more
// than the rest of the row, so it is called only if there is something to trim.
static const char *head_of(const SqlParts *p, const char *text, size_t head)
{
    static const char spaces[] = "E' \\t\\n\\x0b\\f\\r'";
    return arena_printf(
        p->arena,
        "coalesce(nullif(left(CASE WHEN strpos(%s, left(%s, 1)) > 0 THEN ltrim(%s, %s) ELSE %s"
        " END, %zu), ''), left(%s, 1))",
        spaces, text, text, spaces, text, head, text);
}

// A string as its text behind a quotation mark, anything else as JSON: Postgres takes 14 us to
// escape 4 KB, the relay 3. NULL: missing, or null.
static const char *member_text(const SqlParts *p, int index, const Source *source)
{
    if (!of_jsonb(p, source)) {
        return "NULL::text";
    }
    const char *text = arena_printf(p->arena, "(v.m%d #>> '{}')", index);
    size_t head = mapping_source_head(source);
    return arena_printf(
        p->arena,
        "CASE jsonb_typeof(v.m%d) WHEN 'string' THEN '\"' || %s WHEN 'null' THEN NULL"
        " ELSE v.m%d::text END",
        index, head > 0 ? head_of(p, text, head) : text, index);
}

// Each path is followed once a row (OFFSET 0 keeps the planner from copying it to each use).
static void fill_members(SqlParts *p)
{
    const char *values = "";
    for (int i = 0; i < p->sql->mapping->member_count; i++) {
        const Source *source = p->sql->mapping->members[i];
        p->names = arena_printf(p->arena, "%s, %s", p->names, member_text(p, i, source));
        if (of_jsonb(p, source)) {
            values = arena_printf(
                p->arena, "%s%s%s AS m%d", values, values[0] == '\0' ? "" : ", ",
                member_value(p, source), i);
        }
    }
    p->members =
        values[0] == '\0'
            ? ""
            : arena_printf(p->arena, " CROSS JOIN LATERAL (SELECT %s OFFSET 0) AS v", values);
}

// Through the claim's steps a big value stays in its storage and only its size is read; it becomes
// text in the answer.
static void fill_fields(SqlParts *p)
{
    p->fields = "";
    p->names = "";
    p->size = "0";
    for (int i = 0; i < p->sql->mapping->column_count; i++) {
        const char *column = sql_name(p->arena, p->sql->mapping->columns[i].name);
        p->fields = arena_printf(p->arena, "%s, t.%s AS f%d", p->fields, column, i);
        p->names = arena_printf(p->arena, "%s, %s", p->names, column_text(p, i));
        p->size = arena_printf(p->arena, "%s + coalesce(pg_column_size(t.%s), 0)", p->size, column);
    }
    fill_members(p);
}

static const char *order_text(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *text = "";
    for (int i = 0; i < m->order_count; i++) {
        text = arena_printf(
            p->arena, "%s%st.%s", text, i == 0 ? "" : ", ", sql_name(p->arena, m->order_by[i]));
    }
    return text;
}

// OFFSET 0 keeps the planner from making a join of it: each is one look-up by primary key.
static const char *untaken_text(const SqlParts *p)
{
    const Mapping *m = p->sql->mapping;
    const char *text = arena_printf(
        p->arena,
        " AND NOT EXISTS (SELECT FROM stentor_outbox.rejected_rows AS f WHERE f.mapping = %s"
        " AND f.row_key = t.%s::text AND NOT f.again OFFSET 0)",
        p->mapping, p->id);
    if (mapping_is_request(m) && m->moments[MOMENT_CLAIMED].count == 0) {
        text = arena_printf(
            p->arena,
            "%s AND NOT EXISTS (SELECT FROM stentor_outbox.requests AS x WHERE x.mapping = %s"
            " AND x.row_key = t.%s::text AND x.state IN ('published', 'retrying', 'failed') OFFSET "
            "0)",
            text, p->mapping, p->id);
    }
    if (mapping_is_request(m) && mapping_retries_as_pending(m)) {
        // As feedback left it while its request is retried; who changes the row has it claimed.
        text = arena_printf(
            p->arena,
            "%s AND NOT EXISTS (SELECT FROM stentor_outbox.requests AS y WHERE y.mapping = %s"
            " AND y.row_key = t.%s::text AND y.state = 'retrying' AND y.row_xmin = t.xmin OFFSET "
            "0)",
            text, p->mapping, p->id);
    }
    if (mapping_is_request(m)) { // its request has ended, and the row does not show it yet
        text = arena_printf(
            p->arena,
            "%s AND NOT EXISTS (SELECT FROM stentor_outbox.pending_feedback AS w WHERE w.mapping = "
            "%s"
            " AND w.row_key = t.%s::text OFFSET 0)",
            text, p->mapping, p->id);
    }
    return text;
}

static const char *column_or_null(const SqlParts *p, Str column, const char *type)
{
    return column.len == 0 ? arena_printf(p->arena, "NULL::%s", type)
                           : arena_printf(p->arena, "t.%s::%s", sql_name(p->arena, column), type);
}

static SqlParts parts_of(RelaySql *sql)
{
    const Mapping *m = sql->mapping;
    SqlParts p = {.sql = sql, .arena = sql->arena};
    p.mapping = sql_literal(p.arena, m->name);
    p.table = sql_table(p.arena, m->table);
    p.id = sql_name(p.arena, m->id);
    p.id_type = arena_cstr(p.arena, relay_wanted(sql, m->table, m->id)->found);
    p.position = column_or_null(&p, m->position, "int8");
    p.created = column_or_null(&p, m->created_at, "timestamptz");
    p.order = order_text(&p);
    p.untaken = untaken_text(&p);
    fill_fields(&p);
    if (m->state_count > 0) {
        fill_states(&p);
        return p;
    }
    p.pending = sql_conditions(sql, &m->pending, false);
    p.plain = p.pending;
    p.key = m->ordering_key.len == 0
                ? NULL
                : arena_printf(p.arena, "t.%s::text", sql_name(p.arena, m->ordering_key));
    return p;
}

// Independent of statistics (the table may have been empty when they were made, and the tables of
// stentor_outbox are new): read the indexes in order, and look rows up by key. Custom plans know
// the batch's size and the position. The memory holds a batch with its payloads.
#define PLAN_SQL                                                                                   \
    "SELECT set_config('enable_seqscan', 'off', true), "                                           \
    "set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), "   \
    "set_config('enable_mergejoin', 'off', true), set_config('enable_material', 'off', true), "    \
    "set_config('work_mem', '64MB', true), "                                                       \
    "set_config('plan_cache_mode', 'force_custom_plan', true)"

void relay_sql_generate(RelaySql *sql)
{
    SqlParts p = parts_of(sql);
    sql->plan = (DbStatement){"outbox_plan", PLAN_SQL};
    sql->lock = (DbStatement){
        "outbox_lock",
        arena_printf(
            sql->arena,
            PLAN_SQL ", pg_advisory_xact_lock(hashtextextended('stentor_outbox/' || %s, 0))",
            p.mapping)};
    relay_claim_sql(sql, &p);
    relay_mark_sql(sql, &p);
    if (mapping_is_request(sql->mapping)) {
        relay_feedback_sql(sql, &p);
    }
    relay_keep_sql(sql, &p);
    relay_retry_sql(sql, &p);
}
