// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/id.h"

bool inbox_cursor_read(Str text, InboxCursor *ret)
{
    Str placed = STR_EMPTY;
    Str rest = text;
    return str_split(&rest, '.', &placed) && str_to_i64(placed, &ret->placed_us) &&
           ret->placed_us > 0 && ret->placed_us <= INT64_C(253402300799000000) &&
           id_parse(rest, "ntf_", NULL) && (ret->id = rest).len > 0;
}

void inbox_cursor_write(const InboxCursor *cursor, char out[INBOX_CURSOR_SIZE])
{
    (void)snprintf(
        out, INBOX_CURSOR_SIZE, "%" PRId64 "." STR_FMT, cursor->placed_us, STR_ARG(cursor->id));
}

static void set_text(json_t *object, const char *name, Str text)
{
    if (text.len > 0) {
        (void)json_object_set_new(object, name, json_stringn(text.ptr, text.len));
    }
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us != 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static void set_data(json_t *object, const char *data)
{
    json_t *parsed = data[0] == '\0' ? NULL : json_loads(data, JSON_REJECT_DUPLICATES, NULL);
    if (parsed != NULL) {
        (void)json_object_set_new(object, "data", parsed);
    }
}

json_t *inbox_item_json(const InboxItem *item)
{
    char cursor[INBOX_CURSOR_SIZE];
    json_t *object = json_object();
    inbox_cursor_write(&(InboxCursor){item->placed_us, item->id}, cursor);
    set_text(object, "id", item->id);
    set_text(object, "category", item->category);
    set_text(object, "template", item->template);
    set_text(object, "title", str_from(item->content->title));
    set_text(object, "body", str_from(item->content->body));
    set_data(object, item->content->data_json);
    set_text(object, "locale", item->locale);
    set_text(object, "direction", item->direction);
    set_time(object, "created_at", item->created_us);
    set_time(object, "expires_at", item->expires_us);
    set_time(object, "seen_at", item->seen_us);
    set_time(object, "read_at", item->read_us);
    set_time(object, "archived_at", item->archived_us);
    set_time(object, "clicked_at", item->clicked_us);
    set_time(object, "snoozed_until", item->snoozed_until_us);
    (void)json_object_set_new(object, "cursor", json_string(cursor));
    return object;
}

json_t *inbox_counts_of(const PGresult *rows, int from, int to, int column)
{
    int64_t sums[3] = {0};
    int64_t version = 0;
    json_t *categories = json_object();
    for (int i = from; i < to; i++) {
        Str category = db_get_text(rows, i, column);
        int64_t counts[3];
        for (int k = 0; k < 3; k++) {
            counts[k] = db_get_int(rows, i, column + 1 + k);
            sums[k] += counts[k];
        }
        int64_t changed = db_get_int(rows, i, column + 4);
        version = changed > version ? changed : version;
        if (counts[2] > 0) {
            (void)json_object_setn_new(
                categories, category.ptr, category.len,
                json_pack(
                    "{s:I, s:I, s:I}", "unseen", (json_int_t)counts[0], "unread",
                    (json_int_t)counts[1], "total", (json_int_t)counts[2]));
        }
    }
    return json_pack(
        "{s:I, s:I, s:I, s:o, s:I}", "unseen", (json_int_t)sums[0], "unread", (json_int_t)sums[1],
        "total", (json_int_t)sums[2], "by_category", categories, "version", (json_int_t)version);
}

json_t *inbox_counts_json(const PGresult *rows)
{
    return inbox_counts_of(rows, 0, db_rows(rows), 0);
}
