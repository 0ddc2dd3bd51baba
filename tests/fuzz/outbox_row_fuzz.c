// SPDX-License-Identifier: Apache-2.0
// links: svc_outbox_relay
// Any bytes in the columns of an outbox row: refused with words, or a message that ingest can read.
// The first byte chooses the mapping and how the columns are to be understood; 0xff parts columns.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "services/outbox-relay/row/row.h"
#include "stentor/v1/request.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char REQUEST[] =
    "{\"name\":\"r\",\"table\":\"t\",\"publish\":\"request\",\"id\":\"id\",\"order_by\":\"n\","
    "\"pending\":{\"s\":0},\"moments\":{\"sent\":{\"s\":1}},\"fields\":{\"tenant\":{\"value\":"
    "\"acme\"},\"to\":\"a\",\"to_name\":\"b\",\"template\":{\"column\":\"c->x\",\"starts\":{\"<\":"
    "\"h\"},\"otherwise\":\"t\"},\"channel\":{\"column\":\"e\",\"default\":\"email\"},"
    "\"expires_at\":\"f\",\"variables\":{\"x\":\"c->x\",\"y\":\"c\",\"z\":{\"column\":\"c->z\","
    "\"keys\":\"snake_case\"},\"w\":\"a\"}}}";
static const char EVENT[] =
    "{\"name\":\"e\",\"table\":\"t\",\"publish\":\"event\",\"id\":\"id\",\"order_by\":\"n\","
    "\"pending\":{\"s\":null},\"moments\":{\"published\":{\"s\":\"@now\"}},\"fields\":{\"tenant\":"
    "\"a\",\"type\":{\"column\":\"b\",\"before\":\";\",\"after\":\":\",\"names\":{\"A\":\"B\"}},"
    "\"data\":{\"column\":\"c->message\",\"keys\":\"snake_case\"},\"time\":\"f\",\"id\":\"e\","
    "\"traceparent\":\"c->traceparent\"}}";

static void check_event(const RowMessage *message)
{
    assert(message->out.payload.len >= 2 && message->out.payload.ptr[0] == '{');
    assert(str_is_utf8(message->out.payload));
    json_error_t where;
    json_t *root = json_loadb(
        message->out.payload.ptr, message->out.payload.len, JSON_REJECT_DUPLICATES, &where);
    assert(json_is_object(root));
    json_decref(root);
}

static void check_request(const RowMessage *message, Arena *arena)
{
    Error err = {0};
    const Stentor__V1__NotifyCommand *c = (const Stentor__V1__NotifyCommand *)event_unpack(
        &stentor__v1__notify_command__descriptor, message->out.payload, arena, &err);
    assert(c != NULL && c->to[0] != '\0' && c->template_[0] != '\0');
    json_t *variables = json_loads(c->variables_json, JSON_REJECT_DUPLICATES, NULL);
    assert(json_is_object(variables));
    json_decref(variables);
    assert(id_parse(str_from(message->notification_id), "ntf_", NULL));
}

static void check_message(const Mapping *m, const RowMessage *message, Arena *arena)
{
    assert(id_is_tenant(message->tenant));
    assert(strncmp(message->out.subject, "evt.", 4) == 0);
    assert(message->out.event_id.len == EVENT_ID_LEN);
    assert(!str_has_control(message->out.traceparent));
    assert(message->out.payload.len <= EVENT_BYTES_MAX);
    for (size_t i = 0; i < message->out.header_count; i++) {
        assert(!str_has_control(message->out.headers[i].value));
    }
    mapping_is_request(m) ? check_request(message, arena) : check_event(message);
}

// As the claim's SELECT does of a jsonb column.
static RowValue pick(const Source *source, json_t *root, Arena *arena)
{
    json_t *at = root;
    for (int i = 0; at != NULL && i < source->path_count; i++) {
        char name[64];
        at = str_to_c(source->path[i], name, sizeof name) ? json_object_get(at, name) : NULL;
    }
    if (at == NULL || json_is_null(at)) {
        return (RowValue){STR_EMPTY, true};
    }
    char *text = json_dumps(at, JSON_ENCODE_ANY);
    RowValue value = {arena_str(arena, str_from(text)), false};
    free(text);
    return value;
}

static void pick_members(
    const Mapping *m, int column, json_t *root, RowValue *members, Arena *arena)
{
    for (int i = 0; i < m->member_count; i++) {
        if (m->members[i]->column == column) {
            members[i] = pick(m->members[i], root, arena);
        }
    }
}

static void run(const char *json, uint8_t how, Str rest)
{
    Error err = {0};
    Mapping *m = mapping_read(str_from(json), &err);
    assert(m != NULL);
    Arena *arena = arena_new(0);
    RowValue values[MAPPING_COLUMNS_MAX + MAPPING_MEMBERS_MAX] = {{STR_EMPTY, false}};
    ColumnKind kinds[MAPPING_COLUMNS_MAX] = {COLUMN_TEXT};
    for (int i = 0; i < m->column_count; i++) {
        Str column = STR_EMPTY;
        values[i].is_null = !str_split(&rest, '\xff', &column);
        values[i].text = column;
        // Postgres gives only well-formed JSON as JSON.
        json_t *value = json_loadb(column.ptr, column.len, JSON_DECODE_ANY, NULL);
        bool fits = json_is_object(value) && str_is_utf8(column);
        kinds[i] = !fits || (how & 6) == 0 ? COLUMN_TEXT
                   : (how & 4) != 0        ? COLUMN_JSONB
                                           : COLUMN_JSON;
        pick_members(m, i, value, values + m->column_count, arena);
        json_decref(value);
    }
    Row row = {
        .key = STR("k"),
        .attempt = mapping_is_request(m) ? 1 : 0,
        .values = values,
        .made_at_us = INT64_C(1764000000000000)};
    RowMessage message;
    if (row_message(m, kinds, &row, arena, &message, &err)) {
        check_message(m, &message, arena);
    } else {
        assert(
            err.kind == ERROR_PERMANENT && err.text[0] != '\0' && str_is_utf8(str_from(err.text)));
    }
    arena_free(arena);
    mapping_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        run((data[0] & 1) != 0 ? REQUEST : EVENT, data[0], str_of(data + 1, size - 1));
    }
    return 0;
}
