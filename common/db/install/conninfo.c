// SPDX-License-Identifier: Apache-2.0
#include "common/db/install/conninfo.h"

#include <libpq-fe.h>
#include <string.h>

#include "common/base/buf.h"

enum { TEXT_MAX = 16 * 1024 };

static PQconninfoOption *parse(const char *url)
{
    char *words = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &words);
    PQfreemem(words);
    return options;
}

static const char *value_of(const PQconninfoOption *option, const ConninfoPart *parts)
{
    for (const ConninfoPart *part = parts; part->keyword != NULL; part++) {
        if (strcmp(part->keyword, option->keyword) == 0 && part->value != NULL) {
            return part->value;
        }
    }
    return option->val;
}

static void write_part(Buf *out, const char *keyword, const char *value)
{
    buf_printf(out, "%s%s='", out->len > 0 ? " " : "", keyword);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\') {
            buf_char(out, '\\');
        }
        buf_char(out, *c);
    }
    buf_char(out, '\'');
}

char *conninfo_with(Arena *arena, const char *url, const ConninfoPart *parts, Error *err)
{
    PQconninfoOption *options = parse(url);
    if (options == NULL) {
        error_set(
            err, ERROR_CONFIG,
            "the connection string of Postgres cannot be parsed (HINT: host=HOST dbname=stentor)");
        return NULL;
    }
    Buf text;
    buf_init(&text, TEXT_MAX);
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        const char *value = value_of(option, parts);
        if (value != NULL && value[0] != '\0') {
            write_part(&text, option->keyword, value);
        }
    }
    char *made = text.full ? NULL : arena_cstr(arena, buf_view(&text));
    if (made == NULL) {
        error_set(err, ERROR_CONFIG, "the connection string of Postgres is too long");
    }
    buf_done(&text);
    PQconninfoFree(options);
    return made;
}

const char *conninfo_get(Arena *arena, const char *url, const char *keyword)
{
    const char *found = NULL;
    PQconninfoOption *options = parse(url);
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++) {
        if (strcmp(option->keyword, keyword) == 0 && option->val != NULL) {
            found = arena_cstr(arena, str_from(option->val));
        }
    }
    PQconninfoFree(options);
    return found;
}
