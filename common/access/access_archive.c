// SPDX-License-Identifier: Apache-2.0
#include "common/access/access_archive.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/parquet/parquet_reader.h"

enum { COLUMNS_MAX = 40, ADDED = 3 };

#define HIDDEN "hidden_"
#define SEALED "sealed_"

// A restored unit is in Postgres; rows that came for a month after it was sealed are in late
// objects.
static const char OBJECTS[] =
    "SELECT o.key, o.bytes, encode(o.sha256, 'hex') FROM archive.objects o"
    " JOIN archive.units u ON u.id = o.unit WHERE o.tenant = $1 AND u.kind = $2"
    " AND o.ordinal = $3::smallint AND o.state = 'verified'"
    " AND (u.state IN ('removing', 'removed') OR o.kind = 'late') ORDER BY o.kind, o.key";

typedef struct Object {
    StorageWait *storage;
    const char *key, *sha256;
    uint64_t bytes;
} Object;

// One section while objects are read.
typedef struct Reading {
    AccessExport *x;
    const AccessArchive *archive;
    Arena *arena;
    Arena *row;     // of one row
    json_t *by_key; // the rows so far
    json_t *own;    // set: values of the first column that are the person's; NULL: by person
    const char *names[COLUMNS_MAX];
    const ParquetColumn *columns[COLUMNS_MAX]; // NULL: this file does not have it
    size_t count;                              // of the section's
    int at[ADDED];   // of the values: recipient, hash, time; -1: the table has none
    bool by_address; // rows with a recipient's id were found by it
    uint64_t found;
} Reading;

static const char *behind(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(name, prefix, len) == 0 ? name + len : name;
}

const char *access_plain_name(const char *column)
{
    return behind(column, SEALED);
}

// ---- rows by their key ----

static const char *key_of(const Reading *r, const json_t *row)
{
    const char *key = "";
    for (int i = 0; i < r->archive->table->key_columns; i++) {
        const json_t *value =
            json_object_get(row, access_plain_name(PQfname(r->archive->columns, i)));
        key =
            json_is_integer(value)
                ? arena_printf(r->arena, "%s|%020" PRId64, key, (int64_t)json_integer_value(value))
                : arena_printf(
                      r->arena, "%s|%s", key,
                      json_is_string(value) ? json_string_value(value) : "");
    }
    return key;
}

static json_int_t rank_of(const json_t *row)
{
    return json_integer_value(json_object_get(row, HIDDEN "status_rank"));
}

// Takes `row`. What is known already stands, but for a later state.
static void merge(Reading *r, json_t *row)
{
    const char *key = key_of(r, row);
    json_t *known = json_object_get(r->by_key, key);
    if (known == NULL) {
        json_object_set_new(r->by_key, key, row);
        return;
    }
    bool later = rank_of(row) > rank_of(known);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(row, name, value)
    {
        if (!json_is_null(value) && (later || json_is_null(json_object_get(known, name)))) {
            json_object_set(known, name, value);
        }
    }
    json_decref(row);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void give_rows(Reading *r, json_t *list)
{
    size_t count = json_object_size(r->by_key), i = 0;
    const char **keys = arena_array(r->arena, count + 1, sizeof *keys);
    const char *key = NULL;
    json_t *row = NULL;
    json_object_foreach(r->by_key, key, row)
    {
        keys[i++] = key;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    json_array_clear(list);
    for (i = 0; i < count; i++) {
        row = json_object_get(r->by_key, keys[i]);
        json_object_del(row, HIDDEN "status_rank");
        json_array_append(list, row);
    }
}

// ---- a row of an object ----

// As Postgres prints it: without zeros at the end of the fraction.
static json_t *time_json(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    size_t end = strlen(text);
    if (strchr(text, '.') != NULL && end > 0 && text[end - 1] == 'Z') {
        for (end--; end > 0 && text[end - 1] == '0'; end--) {
        }
        end -= text[end - 1] == '.';
        text[end] = 'Z';
        text[end + 1] = '\0';
    }
    return json_string(text);
}

static json_t *value_json(Reading *r, size_t i, const ParquetValue *value, Str id)
{
    const ParquetColumn *column = r->columns[i];
    const char *name = PQfname(r->archive->columns, (int)i);
    if (column == NULL || value->null) {
        return json_null();
    }
    if (access_plain_name(name) != name) {
        return access_opened(r->x, value->bytes, id, access_plain_name(name), r->row);
    }
    switch (column->type) {
    case PARQUET_BOOL:
        return json_boolean(value->number != 0);
    case PARQUET_I32:
    case PARQUET_I64:
        return column->logical == PARQUET_TIME_US ? time_json(value->number)
                                                  : json_integer(value->number);
    case PARQUET_STRING:
    case PARQUET_BYTES:
        break;
    }
    return json_stringn(value->bytes.ptr, value->bytes.len);
}

static ParquetValue added(const Reading *r, int i, const ParquetValue *values)
{
    return r->at[i] >= 0 ? values[r->at[i]] : (ParquetValue){.null = true};
}

static bool is_wanted(Reading *r, const ParquetValue *values)
{
    ParquetValue recipient = added(r, 0, values), hash = added(r, 1, values);
    ParquetValue time = added(r, 2, values);
    if (r->own != NULL) {
        return json_object_get(r->own, arena_cstr(r->row, values[0].bytes)) != NULL;
    }
    if (!recipient.null && recipient.bytes.len > 0) {
        return !r->by_address && str_eq(recipient.bytes, str_from(r->x->person->recipient_id));
    }
    return !hash.null && !time.null && access_is_of_address(r->x, hash.bytes, time.number, r->row);
}

static void take_row(Reading *r, const ParquetValue *values)
{
    arena_reset(r->row);
    if (!is_wanted(r, values)) {
        return;
    }
    json_t *row = json_object();
    for (size_t i = 0; i < r->count; i++) {
        access_set(
            r->x, row, access_plain_name(PQfname(r->archive->columns, (int)i)),
            value_json(r, i, &values[i], values[0].bytes));
    }
    r->found++;
    merge(r, row);
}

// ---- an object ----

static bool read_object(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    const Object *object = ctx;
    return storage_wait_read(object->storage, str_from(object->key), offset, into, len, err);
}

static bool take_rows(Reading *r, ParquetReader *reader, Error *err)
{
    ParquetValue values[COLUMNS_MAX] = {0};
    bool end = false;
    bool ok = parquet_reader_next(reader, values, &end, err);
    while (ok && !end) {
        take_row(r, values);
        ok = parquet_reader_next(reader, values, &end, err);
    }
    return ok;
}

// The recipient's rows, then those of each address without a recipient.
static bool find_rows(Reading *r, ParquetReader *reader, Error *err)
{
    const AccessArchived *table = r->archive->table;
    const ErasurePerson *person = r->x->person;
    bool ok = true;
    r->by_address = false;
    if (table->of != NULL) {
        return take_rows(r, reader, err);
    }
    if (table->recipient != NULL && person->recipient_id[0] != '\0') {
        ok = parquet_reader_find(reader, table->recipient, str_from(person->recipient_id), err) &&
             take_rows(r, reader, err);
    }
    r->by_address = true;
    for (size_t i = 0; ok && i < person->hash_count; i++) {
        ok = parquet_reader_find(reader, table->hash, person->hashes[i], err) &&
             take_rows(r, reader, err);
    }
    return ok;
}

// The place of `name` among those that are wanted, added when it is not there yet.
static int place_of(Reading *r, const char *name, size_t *wanted)
{
    if (name == NULL) {
        return -1;
    }
    for (size_t i = 0; i < *wanted; i++) {
        if (strcmp(r->names[i], name) == 0) {
            return (int)i;
        }
    }
    r->names[*wanted] = name;
    return (int)(*wanted)++;
}

static bool want_columns(Reading *r, ParquetReader *reader, Error *err)
{
    const AccessArchived *table = r->archive->table;
    const char *const more[ADDED] = {table->recipient, table->hash, table->time};
    const ParquetColumn *columns = NULL;
    size_t in_file = parquet_reader_columns(reader, &columns);
    size_t wanted = r->count;
    for (size_t i = 0; i < r->count; i++) {
        const char *name = PQfname(r->archive->columns, (int)i);
        r->names[i] = behind(access_plain_name(name), HIDDEN);
        r->columns[i] = NULL;
        for (size_t c = 0; c < in_file; c++) {
            if (strcmp(columns[c].name, r->names[i]) == 0) {
                r->columns[i] = &columns[c];
            }
        }
    }
    for (size_t i = 0; i < ADDED; i++) {
        r->at[i] = place_of(r, more[i], &wanted);
    }
    return parquet_reader_want(reader, r->names, wanted, err);
}

static bool read_rows(Reading *r, Object *object, Error *err)
{
    ParquetReader *reader = parquet_reader_open(read_object, object, object->bytes, err);
    bool ok = reader != NULL && want_columns(r, reader, err) && find_rows(r, reader, err);
    if (ok) {
        json_array_append_new(
            r->archive->sources,
            json_pack(
                "{s:s, s:s, s:s, s:I, s:I}", "kind", "archive", "name", object->key, "sha256",
                object->sha256, "read", (json_int_t)parquet_reader_rows(reader), "found",
                (json_int_t)r->found));
    }
    parquet_reader_free(reader);
    return ok;
}

static void add_gap(const AccessExport *x, const Object *object, const char *what)
{
    json_array_append_new(
        x->gaps,
        json_pack("{s:s, s:s, s:s}", "what", what, "where", object->key, "sha256", object->sha256));
}

static bool take_object(Reading *r, Object *object, Error *err)
{
    Error why = {0};
    r->found = 0;
    if (object->storage == NULL) {
        add_gap(
            r->x, object,
            "an archived unit, whose rows are not read: STENTOR_STORAGE_URL is not set");
        return true;
    }
    if (read_rows(r, object, &why)) {
        return true;
    }
    if (why.kind != ERROR_PERMANENT) {
        *err = why;
        return error_wrap(err, "object '%.120s'", object->key);
    }
    add_gap(
        r->x, object, arena_printf(r->arena, "an archived unit that cannot be read: %s", why.text));
    return true;
}

// ---- all ----

// The first column of the section that this one hangs on.
static json_t *own_of(const AccessExport *x, const char *section, const char *name)
{
    json_t *out = json_object();
    size_t i = 0;
    const json_t *row = NULL;
    json_array_foreach(json_object_get(x->root, section), i, row)
    {
        const char *id = json_string_value(json_object_get(row, name));
        json_object_set_new(out, id != NULL ? id : "", json_true());
    }
    return out;
}

static bool read_objects(Reading *r, Error *err)
{
    const AccessArchived *table = r->archive->table;
    const char *params[] = {r->x->person->tenant, table->kind, table->ordinal};
    AUTO(PGresult) rows = erasure_pg_query(r->x->pg, OBJECTS, 3, params, err);
    bool ok = rows != NULL;
    for (int i = 0; ok && i < PQntuples(rows); i++) {
        Object object = {
            .storage = r->x->storage,
            .key = PQgetvalue(rows, i, 0),
            .bytes = strtoull(PQgetvalue(rows, i, 1), NULL, 10),
            .sha256 = PQgetvalue(rows, i, 2)};
        ok = take_object(r, &object, err);
    }
    return ok;
}

bool access_add_archived(
    AccessExport *x, const AccessArchive *archive, json_t *list, Arena *arena, Error *err)
{
    const AccessArchived *table = archive->table;
    Reading r = {
        .x = x,
        .archive = archive,
        .arena = arena,
        .row = arena_new(0),
        .by_key = json_object(),
        .count = (size_t)PQnfields(archive->columns)};
    if (table->of != NULL) {
        const char *id = strcmp(table->of, "notifications") == 0 ? "id" : "correlation_id";
        r.own = own_of(x, table->of, id);
    }
    size_t i = 0;
    json_t *row = NULL;
    json_array_foreach(list, i, row)
    {
        merge(&r, json_incref(row));
    }
    bool ok = r.count + ADDED <= COLUMNS_MAX && read_objects(&r, err);
    if (ok) {
        give_rows(&r, list);
    }
    json_decref(r.by_key);
    json_decref(r.own);
    arena_free(r.row);
    return ok;
}
