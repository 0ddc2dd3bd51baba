// SPDX-License-Identifier: Apache-2.0
#include "common/variables/variable_format.h"

#include <ctype.h>

#include "common/base/clock.h"
#include "common/model/address.h"

const char VARIABLE_FORMATS[] = "email uri date time date-time uuid";

static bool is_email(Str text, Arena *arena)
{
    char reason[ADDRESS_REASON_SIZE];
    Str ignored;
    return address_parse(text, arena, &ignored, reason);
}

// RFC 3986: a scheme, a colon, and something behind it without white space.
static bool is_uri(Str text, Arena *arena)
{
    (void)arena;
    ptrdiff_t colon = str_find(text, ':');
    if (colon < 1 || (size_t)colon + 1 == text.len || !isalpha((unsigned char)text.ptr[0])) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool scheme = isalnum(c) || c == '+' || c == '-' || c == '.';
        if (c <= ' ' || c == 0x7f || (i < (size_t)colon && !scheme)) {
            return false;
        }
    }
    return true;
}

// `pattern` with 'd' for a digit and 'x' for a hexadecimal one.
static bool is_shaped(Str text, const char *pattern)
{
    Str shape = str_from(pattern);
    bool ok = text.len == shape.len;
    for (size_t i = 0; ok && i < shape.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        ok = shape.ptr[i] == 'd'   ? isdigit(c) != 0
             : shape.ptr[i] == 'x' ? isxdigit(c) != 0
                                   : c == (unsigned char)shape.ptr[i];
    }
    return ok;
}

static bool is_date_time(Str text, Arena *arena)
{
    (void)arena;
    int64_t ignored = 0;
    return clock_parse(text, &ignored);
}

// The calendar is the clock's: 2026-02-30 is no day.
static bool is_date(Str text, Arena *arena)
{
    return is_shaped(text, "dddd-dd-dd") &&
           is_date_time(
               str_from(arena_printf(arena, STR_FMT "T00:00:00Z", STR_ARG(text))), arena);
}

static bool is_time(Str text, Arena *arena)
{
    const char *seconds = is_shaped(text, "dd:dd") ? ":00" : "";
    return (is_shaped(text, "dd:dd") || is_shaped(text, "dd:dd:dd")) &&
           is_date_time(
               str_from(
                   arena_printf(arena, "2026-01-01T" STR_FMT "%sZ", STR_ARG(text), seconds)),
               arena);
}

static bool is_uuid(Str text, Arena *arena)
{
    (void)arena;
    return is_shaped(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

typedef struct Format {
    const char *name;
    bool (*met)(Str text, Arena *arena);
} Format;

static const Format FORMATS[] = {
    {"email", is_email}, {"uri", is_uri},   {"date", is_date},
    {"time", is_time},   {"uuid", is_uuid}, {"date-time", is_date_time},
};

static const Format *find(Str name)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (str_eq(name, str_from(FORMATS[i].name))) {
            return &FORMATS[i];
        }
    }
    return NULL;
}

bool variable_format_is(Str name)
{
    return find(name) != NULL;
}

bool variable_format_met(Str name, Str text, Arena *arena)
{
    const Format *format = find(name);
    return format == NULL || format->met(text, arena);
}
