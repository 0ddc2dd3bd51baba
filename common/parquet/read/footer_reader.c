// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/read/footer_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/checksum.h"
#include "common/parquet/read/footer_pass.h"

void footer_require(FooterPass *p, bool holds, const char *what)
{
    if (!holds && !p->in.bad) {
        p->wrong = what;
        p->in.bad = true;
        p->in.rest = STR_EMPTY;
    }
}

// ---- schema ----

typedef struct SchemaRow {
    int64_t type, optional, converted, children;
    Str name;
} SchemaRow;

static SchemaRow read_schema_row(FooterPass *p)
{
    SchemaRow row = {.type = -1, .converted = -1};
    ThriftField field = {0};
    while (thrift_next(&p->in, &field)) {
        switch (field.id) {
        case SCHEMA_TYPE:
            row.type = thrift_get_int(&p->in, &field);
            break;
        case SCHEMA_OPTIONAL:
            row.optional = thrift_get_int(&p->in, &field);
            break;
        case SCHEMA_NAME:
            row.name = thrift_get_bytes(&p->in, &field);
            break;
        case SCHEMA_CHILDREN:
            row.children = thrift_get_int(&p->in, &field);
            break;
        case SCHEMA_CONVERTED:
            row.converted = thrift_get_int(&p->in, &field);
            break;
        default:
            thrift_skip(&p->in, &field);
        }
    }
    return row;
}

static const struct {
    int type, converted;
    ParquetType is;
    ParquetLogical logical;
} types[] = {
    {PHYSICAL_BOOL, -1, PARQUET_BOOL, PARQUET_NO_LOGICAL},
    {PHYSICAL_I32, -1, PARQUET_I32, PARQUET_NO_LOGICAL},
    {PHYSICAL_I32, CONVERTED_I16, PARQUET_I32, PARQUET_I16},
    {PHYSICAL_I64, -1, PARQUET_I64, PARQUET_NO_LOGICAL},
    {PHYSICAL_I64, CONVERTED_TIME_US, PARQUET_I64, PARQUET_TIME_US},
    {PHYSICAL_BYTES, -1, PARQUET_BYTES, PARQUET_NO_LOGICAL},
    {PHYSICAL_BYTES, CONVERTED_UTF8, PARQUET_STRING, PARQUET_NO_LOGICAL},
    {PHYSICAL_BYTES, CONVERTED_JSON, PARQUET_STRING, PARQUET_JSON},
};

static bool find_type(const SchemaRow *row, ParquetColumn *ret)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type == row->type && types[i].converted == row->converted) {
            ret->type = types[i].is;
            ret->logical = types[i].logical;
            return true;
        }
    }
    return false;
}

static void add_column(FooterPass *p, const SchemaRow *row)
{
    Footer *f = p->footer;
    ParquetColumn *column = &f->columns[f->count];
    char *name = f->names[f->count];
    *column = (ParquetColumn){.name = name, .optional = row->optional == 1};
    footer_require(p, find_type(row, column), "a column of a type that is not read");
    footer_require(p, row->optional == 0 || row->optional == 1, "a column that repeats");
    footer_require(p, row->children == 0, "a column of columns");
    bool named = row->name.len > 0 && !str_has_control(row->name) &&
                 str_to_c(row->name, name, PARQUET_NAME_MAX + 1);
    footer_require(p, named, "a column's name");
    for (size_t i = 0; i < f->count && named; i++) {
        footer_require(p, strcmp(f->names[i], name) != 0, "two columns of one name");
    }
    f->count++;
}

static void read_schema(FooterPass *p, const ThriftField *field)
{
    size_t count = thrift_get_list(&p->in, field, THRIFT_STRUCT, PARQUET_COLUMNS_MAX + 1);
    footer_require(p, count > 1, "no columns");
    SchemaRow root = read_schema_row(p);
    footer_require(p, root.children == (int64_t)count - 1, "a schema that is not flat");
    for (size_t i = 1; i < count && !p->in.bad; i++) {
        SchemaRow row = read_schema_row(p);
        if (!p->in.bad) {
            add_column(p, &row);
        }
    }
}

// ---- row groups ----

static void read_group(FooterPass *p, GroupInfo *group)
{
    ThriftField field = {0};
    Footer *f = p->footer;
    int64_t rows = -1;
    while (thrift_next(&p->in, &field)) {
        if (field.id == GROUP_COLUMNS) {
            size_t count = thrift_get_list(&p->in, &field, THRIFT_STRUCT, PARQUET_COLUMNS_MAX);
            footer_require(p, count == f->count, "a row group with other columns");
            group->chunks = xcalloc(count + 1, sizeof *group->chunks);
            for (size_t i = 0; i < count && !p->in.bad; i++) {
                footer_read_chunk(p, &group->chunks[i], &f->columns[i]);
            }
        } else if (field.id == GROUP_ROWS) {
            rows = thrift_get_int(&p->in, &field);
        } else {
            thrift_skip(&p->in, &field);
        }
    }
    footer_require(p, rows > 0 && group->chunks != NULL, "a row group without rows");
    group->rows = (uint64_t)rows;
    for (size_t i = 0; i < f->count && !p->in.bad; i++) {
        footer_require(
            p, group->chunks[i].rows == group->rows, "a chunk with another number of rows");
        footer_require(p, group->chunks[i].nulls <= group->rows, "more nulls than rows");
    }
}

static void read_groups(FooterPass *p, const ThriftField *field)
{
    Footer *f = p->footer;
    size_t count = thrift_get_list(&p->in, field, THRIFT_STRUCT, GROUPS_MAX);
    footer_require(p, f->count > 0, "row groups before the schema");
    f->groups = xcalloc(count + 1, sizeof *f->groups);
    for (; f->group_count < count && !p->in.bad; f->group_count++) {
        read_group(p, &f->groups[f->group_count]);
    }
}

// ---- the footer ----

// The footer's CRC is over its bytes with zeros in its own place.
static void check_crc(FooterPass *p, Str text)
{
    Footer *f = p->footer;
    uint32_t crc = 0;
    footer_require(p, footer_hex(text, &crc), "the footer's checksum");
    if (p->in.bad) {
        return;
    }
    memset(f->bytes + (text.ptr - f->bytes), '0', text.len);
    footer_require(p, parquet_crc32(0, f->bytes, f->len) == crc, "a footer that was changed");
}

static char *copy(Str text)
{
    char *out = xmalloc(text.len + 1);
    str_to_c(text, out, text.len + 1);
    return out;
}

static void read_metadata(FooterPass *p, const ThriftField *field)
{
    Footer *f = p->footer;
    size_t count = thrift_get_list(&p->in, field, THRIFT_STRUCT, PARQUET_METADATA_MAX);

    for (size_t i = 0; i < count && !p->in.bad; i++) {
        Str name, value;
        footer_pair(p, &name, &value);
        if (p->in.bad) {
            return;
        }
        if (str_eq(name, STR(FOOTER_CRC_NAME))) {
            check_crc(p, value);
            p->checked = true;
            continue;
        }
        f->pair_names[f->pairs] = copy(name);
        f->pair_values[f->pairs++] = copy(value);
    }
}

static void read_file(FooterPass *p)
{
    ThriftField field = {0};
    int64_t rows = -1;
    while (thrift_next(&p->in, &field)) {
        switch (field.id) {
        case FILE_SCHEMA:
            read_schema(p, &field);
            break;
        case FILE_ROWS:
            rows = thrift_get_int(&p->in, &field);
            break;
        case FILE_GROUPS:
            read_groups(p, &field);
            break;
        case FILE_METADATA:
            read_metadata(p, &field);
            break;
        default:
            thrift_skip(&p->in, &field);
        }
    }
    footer_require(p, p->checked, "no checksum of its own");
    uint64_t sum = 0;
    for (size_t i = 0; i < p->footer->group_count && !p->in.bad; i++) {
        sum += p->footer->groups[i].rows;
        footer_require(p, sum <= INT64_MAX, "too many rows");
    }
    footer_require(
        p, rows >= 0 && (uint64_t)rows == sum, "another number of rows than its row groups");
    footer_require(
        p, p->footer->count > 0 && p->in.rest.len == 0, "no schema, or bytes behind the end");
    p->footer->rows = sum;
}

bool footer_read(Footer *footer, char *bytes, size_t len, uint64_t pages_end, Error *err)
{
    *footer = (Footer){.bytes = bytes, .len = len};
    FooterPass p = {.in = {.rest = str_of(bytes, len)}, .footer = footer, .pages_end = pages_end};
    read_file(&p);
    if (!p.in.bad) {
        return true;
    }
    footer_done(footer);
    return error_set(
        err, ERROR_PERMANENT, "parquet: footer: %s",
        p.wrong != NULL ? p.wrong : "it is not in the compact protocol");
}

void footer_done(Footer *footer)
{
    for (size_t i = 0; i < footer->group_count && footer->groups != NULL; i++) {
        free(footer->groups[i].chunks);
    }
    for (size_t i = 0; i < footer->pairs; i++) {
        free(footer->pair_names[i]);
        free(footer->pair_values[i]);
    }
    free(footer->groups);
    free(footer->bytes);
    *footer = (Footer){0};
}
