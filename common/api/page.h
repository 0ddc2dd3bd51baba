// SPDX-License-Identifier: Apache-2.0
// Pages of a list: {"data": [...], "next": "<cursor>" or null}, asked for by ?limit= and ?cursor=.
// A cursor is opaque: base64url of a MAC and the position behind which the next page begins. The
// MAC covers tenant, route and every other query parameter, so a cursor of another list, another
// filter or another tenant, and one that was cut or edited, is 400 and never a wrong page. Which
// tenant's rows are shown is the query's own business and never the cursor's.
#pragma once

#include <jansson.h>

#include "common/api/api.h"

enum { PAGE_LIMIT = 100, PAGE_LIMIT_MAX = 1000 };

typedef struct Page {
    size_t limit;
    Str after; // the position that the cursor holds, in the request's arena; empty: the first page
    size_t made; // items so far
} Page;

// false: answered. limit_max: PAGE_LIMIT_MAX, or more for an export; `limit` is what no caller
// says.
bool page_read(ApiCall *call, size_t limit, size_t limit_max, Page *ret);

// The answer's text. Before each item page_item; `last` is the position of the last one shown, at
// most PAGE_POSITION_MAX bytes; empty: there is nothing behind it.
void page_begin(Buf *out);
void page_item(Page *page, Buf *out); // the comma, and counts
void page_end(const ApiCall *call, Str last, Buf *out);
// The same of a JSON array, which is taken.
void page_answer(ApiCall *call, json_t *data, Str last);
// The cursor alone, in the request's arena.
const char *page_cursor(const ApiCall *call, Str position);
