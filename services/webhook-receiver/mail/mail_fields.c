// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_fields.h"

#include <string.h>

static Str cut_line(Str *rest)
{
    Str line = STR_EMPTY;
    (void)str_split(rest, '\n', &line);
    return line.len > 0 && line.ptr[line.len - 1] == '\r' ? str_slice(line, 0, line.len - 1) : line;
}

static bool is_folded(Str rest)
{
    return rest.len > 0 && (rest.ptr[0] == ' ' || rest.ptr[0] == '\t');
}

// RFC 5322: printable, no space, no colon.
static bool is_name(Str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c <= ' ' || c >= 0x7f) {
            return false;
        }
    }
    return name.len > 0;
}

// The continuation lines joined by one space each.
static Str unfold(Str value, Str *rest, Arena *arena)
{
    if (!is_folded(*rest)) {
        return str_trim(value);
    }
    Str all = value;
    while (is_folded(*rest)) {
        Str line = cut_line(rest);
        all.len = (size_t)(line.ptr + line.len - value.ptr);
    }
    char *out = arena_alloc(arena, all.len + 1);
    size_t len = 0;
    while (all.len > 0) {
        Str line = str_trim(cut_line(&all));
        memcpy(out + len, line.ptr, line.len);
        len += line.len;
        out[len++] = ' ';
    }
    return str_trim((Str){out, len});
}

bool mail_field_next(Str *rest, Arena *arena, MailField *ret)
{
    bool first = false;
    while (rest->len > 0) {
        Str line = cut_line(rest);
        ptrdiff_t colon = str_find(line, ':');
        Str name = colon < 0 ? STR_EMPTY : str_trim(str_slice(line, 0, (size_t)colon));
        if (str_trim(line).len == 0) {
            first = true;
        } else if (is_name(name) && line.ptr[0] != ' ' && line.ptr[0] != '\t') {
            Str value = str_slice(line, (size_t)colon + 1, line.len);
            *ret = (MailField){.name = name, .value = unfold(value, rest, arena), .first = first};
            return true;
        }
    }
    return false;
}
