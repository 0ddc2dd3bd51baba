// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "services/gateway/figures/figures_internal.h"

static const int64_t HOUR_US = INT64_C(3600) * 1000000;

static bool read_time(ApiCall *call, const char *name, int64_t *ret_us)
{
    Str text = http_query(call->http, name);
    return text.len == 0 || clock_parse(text, ret_us) ||
           api_refuse_field(call, name, "not a time such as '2026-12-24T15:00:00Z'");
}

static bool read_span(FiguresCall *figures, int64_t hours)
{
    ApiCall *call = figures->call;
    figures->before_us = call->http->received_at_us;
    if (!read_time(call, "to", &figures->before_us)) {
        return false;
    }
    figures->since_us = figures->before_us - hours * HOUR_US;
    if (!read_time(call, "from", &figures->since_us)) {
        return false;
    }
    if (figures->since_us >= figures->before_us) {
        return api_refuse_field(call, "from", "must be before `to`");
    }
    return figures->before_us - figures->since_us <= FIGURES_DAYS * 24 * HOUR_US ||
           api_refuse_field(
               call, "from", "at most %d days before `to`; ask for one part after the other",
               (int)FIGURES_DAYS);
}

// The first of the words is what no caller says.
static bool read_by(FiguresCall *figures, const char *words)
{
    Str rest = str_from(words);
    Str word = STR_EMPTY;
    Str asked = http_query(figures->call->http, "by");
    while (str_split(&rest, ' ', &word)) {
        if (asked.len == 0 || str_eq(asked, word)) {
            figures->by = word;
            return true;
        }
    }
    return api_refuse_field(figures->call, "by", "not one of: %s", words);
}

FiguresCall *figures_read(ApiCall *call, int64_t hours, const char *words)
{
    FiguresCall *figures = arena_zalloc(call->http->arena, sizeof *figures);
    *figures = (FiguresCall){.call = call, .by = STR_EMPTY};
    bool ok = read_span(figures, hours) && (words == NULL || read_by(figures, words));
    return ok ? figures : NULL;
}

void figures_add(DbParams *p, const FiguresCall *figures, bool all)
{
    const ApiCall *call = figures->call;
    if (all && call->operates && str_eq(str_from(call->tenant), AUTH_PLATFORM)) {
        db_null(p);
    } else {
        db_text(p, str_from(call->tenant));
    }
    db_time(p, figures->since_us);
    db_time(p, figures->before_us);
}

json_t *figures_frame(const FiguresCall *figures)
{
    char from[CLOCK_RFC3339_SIZE], to[CLOCK_RFC3339_SIZE];
    clock_format(figures->since_us, from);
    clock_format(figures->before_us, to);
    json_t *object = json_pack("{s:s, s:s}", "from", from, "to", to);
    if (figures->by.len > 0) {
        (void)json_object_set_new(object, "by", json_stringn(figures->by.ptr, figures->by.len));
    }
    return object;
}

json_t *figures_amount(int64_t micros)
{
    char text[40];
    int used = snprintf(
        text, sizeof text, "%" PRId64 ".%06" PRId64, micros / 1000000,
        micros < 0 ? -(micros % 1000000) : micros % 1000000);
    while (text[used - 1] == '0') { // it has a point
        used--;
    }
    used -= text[used - 1] == '.';
    return json_stringn(text, (size_t)used);
}

json_t *figures_share(int64_t part, int64_t of)
{
    return of > 0 ? json_real((double)part / (double)of) : json_null();
}
