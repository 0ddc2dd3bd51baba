// SPDX-License-Identifier: Apache-2.0
// An inbox as JSON, and the place of an item in it as a cursor: "<placed, us>.<notification id>".
// Pure.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/db/db.h"
#include "stentor/v1/rendered.pb-c.h"

enum { INBOX_CURSOR_SIZE = 64 };

typedef struct InboxCursor {
    int64_t placed_us;
    Str id; // empty: none
} InboxCursor;

// false: not a cursor.
bool inbox_cursor_read(Str text, InboxCursor *ret);
void inbox_cursor_write(const InboxCursor *cursor, char out[INBOX_CURSOR_SIZE]);

typedef struct InboxItem {
    Str id, category, template, locale, direction;
    const Stentor__V1__InappContent *content;
    int64_t created_us, placed_us, expires_us;
    int64_t seen_us, read_us, archived_us, clicked_us, snoozed_until_us; // 0: not
} InboxItem;

json_t *inbox_item_json(const InboxItem *item);
// Rows of category, unseen, unread, total, version.
json_t *inbox_counts_json(const PGresult *rows);
// The same of the rows from `from` to before `to`, whose columns begin at `column`.
json_t *inbox_counts_of(const PGresult *rows, int from, int to, int column);
