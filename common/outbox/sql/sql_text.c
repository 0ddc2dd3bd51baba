// SPDX-License-Identifier: Apache-2.0
#include "common/outbox/sql/sql_text.h"

#include <string.h>

#include "common/base/buf.h"

enum { TEXT_MAX = 64 * 1024 };

static const char *quoted(Arena *arena, Str text, char quote, const char *before)
{
    Buf out;
    buf_init(&out, TEXT_MAX * 2 + 8);
    buf_cstr(&out, before);
    buf_char(&out, quote);
    for (size_t i = 0; i < text.len; i++) {
        bool twice = text.ptr[i] == quote || (text.ptr[i] == '\\' && before[0] != '\0');
        buf_char(&out, text.ptr[i]);
        if (twice) {
            buf_char(&out, text.ptr[i]);
        }
    }
    buf_char(&out, quote);
    const char *copy = arena_cstr(arena, buf_view(&out));
    buf_done(&out);
    return copy;
}

const char *sql_name(Arena *arena, Str name)
{
    return quoted(arena, name, '"', "");
}

const char *sql_table(Arena *arena, Str table)
{
    ptrdiff_t dot = str_find(table, '.');
    if (dot < 0) {
        return sql_name(arena, table);
    }
    return arena_printf(
        arena, "%s.%s", sql_name(arena, str_slice(table, 0, (size_t)dot)),
        sql_name(arena, str_slice(table, (size_t)dot + 1, table.len)));
}

// Independent of standard_conforming_strings: E'' always interprets backslashes.
const char *sql_literal(Arena *arena, Str text)
{
    return quoted(arena, text, '\'', str_find(text, '\\') >= 0 ? "E" : "");
}

static const char *assign_value(const RelaySql *sql, const Assign *a, const SqlValues *v)
{
    const char *own = arena_printf(sql->arena, "t.%s", sql_name(sql->arena, a->column));
    Str type = relay_wanted(sql, sql->mapping->table, a->column)->found;
    switch (a->kind) {
    case ASSIGN_NULL:
        return "NULL";
    case ASSIGN_LITERAL:
        return sql_literal(sql->arena, a->text);
    case ASSIGN_NOW:
        return "now()";
    case ASSIGN_AT:
        return v->at == NULL ? "now()" : v->at;
    case ASSIGN_REASON: // an explicit cast cuts the text, an assignment would fail
        return v->reason == NULL ? own
                                 : arena_printf(sql->arena, "%s::%.*s", v->reason, STR_ARG(type));
    case ASSIGN_ATTEMPTS:
        return v->attempts == NULL ? own : v->attempts;
    case ASSIGN_INCREMENT:
        return arena_printf(sql->arena, "coalesce(%s, 0) + 1", own);
    }
    return own;
}

const char *sql_assigns(const RelaySql *sql, const Assigns *assigns, const SqlValues *values)
{
    const char *text = "";
    for (size_t i = 0; i < assigns->count; i++) {
        const Assign *a = &assigns->items[i];
        text = arena_printf(
            sql->arena, "%s%s%s = %s", text, i == 0 ? "" : ", ", sql_name(sql->arena, a->column),
            assign_value(sql, a, values));
    }
    return text;
}

const char *sql_conditions(const RelaySql *sql, const Assigns *assigns, bool values_only)
{
    const char *text = "";
    for (size_t i = 0; i < assigns->count; i++) {
        const Assign *a = &assigns->items[i];
        const char *name = sql_name(sql->arena, a->column);
        const char *and = text[0] == '\0' ? "" : " AND ";
        if (a->kind == ASSIGN_LITERAL) {
            text = arena_printf(
                sql->arena, "%s%st.%s = %s", text, and, name, sql_literal(sql->arena, a->text));
        } else if (a->kind == ASSIGN_NULL && !values_only) {
            text = arena_printf(sql->arena, "%s%st.%s IS NULL", text, and, name);
        }
    }
    return text[0] == '\0' ? "true" : text;
}
