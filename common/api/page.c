// SPDX-License-Identifier: Apache-2.0
#include "common/api/page.h"

#include <stdlib.h>

enum { BINDING_MAX = 64 * 1024 }; // a target has at most 32 KiB

static void add_part(Buf *out, Str text)
{
    buf_printf(out, "%zu:", text.len);
    buf_str(out, text);
}

// What the page is one of. The row's order of parameters counts, not the caller's.
static void bind_page(const ApiCall *call, Buf *out)
{
    buf_init(out, BINDING_MAX);
    add_part(out, str_from(call->tenant));
    add_part(out, str_from(call->route->path));
    for (size_t i = 0; i < API_PARAMS_MAX; i++) {
        add_part(out, call->params[i]);
    }
    Str rest = str_from(call->route->query);
    Str name = STR_EMPTY;
    while (str_split(&rest, ' ', &name)) {
        if (!str_eq(name, STR("limit")) && !str_eq(name, STR("cursor"))) {
            add_part(out, http_query(call->http, arena_cstr(call->http->arena, name)));
        }
    }
}

static bool read_limit(ApiCall *call, size_t limit_max, Page *ret)
{
    Str text = http_query(call->http, "limit");
    int64_t limit = 0;
    if (text.len == 0) {
        return true;
    }
    if (!str_to_i64(text, &limit) || limit < 1 || limit > (int64_t)limit_max) {
        FieldError err = {.field = ""};
        (void)field_error(&err, "limit", "a whole number from 1 to %zu", limit_max);
        api_answer_field(call, &err);
        return false;
    }
    ret->limit = (size_t)limit;
    return true;
}

static bool read_cursor(ApiCall *call, Page *ret)
{
    Str text = http_query(call->http, "cursor");
    if (text.len == 0) {
        return true;
    }
    uint8_t *position = arena_alloc(call->http->arena, PAGE_POSITION_MAX);
    size_t len = 0;
    Buf binding;
    bind_page(call, &binding);
    bool good = page_cursor_read(call->page_keys, buf_view(&binding), text, position, &len);
    buf_done(&binding);
    if (!good) {
        api_answer_parameter(
            call, "cursor",
            "not a cursor of this list; send the `next` of the page before unchanged and with "
            "the same filter, or leave it out for the first page");
        return false;
    }
    ret->after = str_of(position, len);
    return true;
}

bool page_read(ApiCall *call, size_t limit, size_t limit_max, Page *ret)
{
    *ret = (Page){.limit = limit, .after = STR_EMPTY};
    return read_limit(call, limit_max, ret) && read_cursor(call, ret);
}

const char *page_cursor(const ApiCall *call, Str position)
{
    char *cursor = arena_alloc(call->http->arena, PAGE_CURSOR_SIZE);
    Buf binding;
    bind_page(call, &binding);
    page_cursor_write(call->page_keys, buf_view(&binding), position, cursor);
    buf_done(&binding);
    return cursor;
}

void page_begin(Buf *out)
{
    buf_cstr(out, "{\"data\":[");
}

void page_item(Page *page, Buf *out)
{
    buf_cstr(out, page->made++ > 0 ? "," : "");
}

void page_end(const ApiCall *call, Str last, Buf *out)
{
    if (last.len == 0) {
        buf_cstr(out, "],\"next\":null}");
    } else {
        buf_printf(out, "],\"next\":\"%s\"}", page_cursor(call, last));
    }
}

void page_answer(ApiCall *call, json_t *data, Str last)
{
    const char *next = last.len > 0 ? page_cursor(call, last) : NULL;
    json_t *answer = json_pack("{s:o,s:s?}", "data", data, "next", next);
    char *text = json_dumps(answer, JSON_COMPACT);
    http_respond(call->http, 200, "application/json", str_from(text));
    free(text);
    json_decref(answer);
}
