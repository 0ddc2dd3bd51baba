// SPDX-License-Identifier: Apache-2.0
#include "services/cli/api_field.h"

// clang-format off
// Where the names differ by more than '_' for '-'. In the order in which they are tried: a command
// has at most one of two options of the same field.
static const struct {
    const char *field, *option;
} aliases[] = {
    {"scheduled_for",               "at"},
    {"expires_at",                  "expires"},
    {"recipient_id",                "recipient"},
    {"channels",                    "channel"},
    {"rate_per_second",             "rate"},
    {"overlap_seconds",             "grace"},
    {"to.address",                  "to"},
    {"to.name",                     "name"},
    {"sender_address",              "sender"},
    {"limits.per_minute",           "limit-minute"},
    {"limits.per_day",              "limit-day"},
    {"recipient_limits.per_minute", "recipient-limit-minute"},
    {"recipient_limits.per_day",    "recipient-limit-day"},
    {"quiet_hours.start",           "quiet-hours"},
    {"quiet_hours.end",             "quiet-hours"},
    {"identity_type",               "identity"},
    {"identity_id",                 "identity"},
    {"guardian_id",                 "guardian"},
    {"event_type",                  "event"},
    {"offset_s",                    "offset"},
    {"published_by",                "by"},
    {"fallback_locales",            "fallback"},
    {"body",                        "file"},
    {"target_url",                  "url"},
    {"events",                      "event"},
    {"categories",                  "category"},
    {"overlap_s",                   "grace"},
    {"secrets",                     "secret"},
};
// clang-format on

static bool has_option(const Command *command, Str name)
{
    Str rest = {0};
    CommandFlag flag;
    while (command_flag(command, &rest, &flag)) {
        if (str_eq(flag.name, name)) {
            return true;
        }
    }
    return false;
}

// "notifications[0].to.name" -> "to.name", "locales[0].subject" -> "subject".
static Str within_item(Str field)
{
    for (size_t i = 0; i + 1 < field.len; i++) {
        if (field.ptr[i] == ']' && field.ptr[i + 1] == '.') {
            return str_slice(field, i + 2, field.len);
        }
    }
    return field;
}

// "theme.color" and "theme[0]" -> "theme".
static Str outermost(Str field)
{
    size_t len = 0;
    while (len < field.len && field.ptr[len] != '.' && field.ptr[len] != '[') {
        len++;
    }
    return str_slice(field, 0, len);
}

static const char *dashed(Str field, Arena *arena)
{
    char *name = arena_printf(arena, STR_FMT, STR_ARG(field));
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    return name;
}

const char *api_field_option(const Command *command, Str field, Arena *arena)
{
    Str own = within_item(field);
    if (str_starts(own, STR("variables.")) && has_option(command, STR("var"))) {
        Str name = str_slice(own, sizeof "variables." - 1, own.len);
        return arena_printf(arena, "--var " STR_FMT, STR_ARG(name));
    }
    if (str_starts(own, STR("definition.")) && has_option(command, STR("definition"))) {
        Str place = str_slice(own, sizeof "definition." - 1, own.len);
        return arena_printf(arena, "--definition " STR_FMT, STR_ARG(place));
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        Str known = str_from(aliases[i].field);
        if ((str_eq(own, known) || str_eq(outermost(own), known) ||
             str_eq(outermost(field), known)) &&
            has_option(command, str_from(aliases[i].option))) {
            return arena_printf(arena, "--%s", aliases[i].option);
        }
    }
    const char *name = dashed(outermost(own), arena);
    return has_option(command, str_from(name)) ? arena_printf(arena, "--%s", name) : NULL;
}
