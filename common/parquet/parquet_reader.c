// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/parquet_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/read/column_reader.h"
#include "common/parquet/read/decode.h"
#include "common/parquet/read/page_index.h"
#include "common/parquet/row_digest.h"

enum { NO_COLUMN = -1 };

struct ParquetReader {
    Footer footer;
    PageReader *pages;
    ColumnReader *columns[PARQUET_COLUMNS_MAX]; // those that were ever wanted
    int wanted[PARQUET_COLUMNS_MAX];            // the file's column, or NO_COLUMN
    size_t wanted_count;
    RowDigest *digest; // while every column of the file is wanted, else NULL
    bool in_group;
    size_t group; // at hand, or the next one
    uint64_t row; // the next one, of the group at hand
    // A search; its column is read by a reader of its own.
    bool searching;
    int found_column; // NO_COLUMN: no row matches
    Buf equals;
    ColumnReader *search;
    PageLocations locations; // of the searched column's chunk
    bool *may;               // for each of its pages
};

// ---- opening ----

static bool fetch_footer(
    ParquetReader *r, ParquetSource source, void *ctx, uint64_t bytes, Error *err)
{
    char tail[TAIL_LEN], head[sizeof PARQUET_MAGIC - 1];
    uint32_t len;
    if (bytes < sizeof head + TAIL_LEN || bytes > INT64_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "parquet: a file of %llu bytes", (unsigned long long)bytes);
    }
    if (!source(ctx, 0, head, sizeof head, err) ||
        !source(ctx, bytes - TAIL_LEN, tail, TAIL_LEN, err)) {
        return false;
    }
    Str rest = str_of(tail, TAIL_LEN);
    decode_u32(&rest, &len);
    if (!str_eq(rest, STR(PARQUET_MAGIC)) || memcmp(head, PARQUET_MAGIC, sizeof head) != 0) {
        return error_set(err, ERROR_PERMANENT, "parquet: no such file, or it was cut short");
    }
    if (len > FOOTER_MAX || len > bytes - TAIL_LEN - sizeof head) {
        return error_set(err, ERROR_PERMANENT, "parquet: a footer of %u bytes", len);
    }
    uint64_t at = bytes - TAIL_LEN - len;
    char *footer = xmalloc((size_t)len + 1);
    if (!source(ctx, at, footer, len, err)) {
        free(footer);
        return false;
    }
    return footer_read(&r->footer, footer, len, at, err);
}

static void want_all(ParquetReader *r)
{
    r->wanted_count = r->footer.count;
    for (size_t i = 0; i < r->footer.count; i++) {
        r->wanted[i] = (int)i;
    }
}

static void begin_again(ParquetReader *r)
{
    r->in_group = false;
    r->group = 0;
    r->row = 0;
    bool all = r->wanted_count == r->footer.count;
    for (size_t i = 0; i < r->wanted_count; i++) {
        all = all && r->wanted[i] != NO_COLUMN;
    }
    row_digest_free(r->digest);
    r->digest = all ? row_digest_new(r->footer.columns, r->footer.count) : NULL;
}

ParquetReader *parquet_reader_open(ParquetSource source, void *ctx, uint64_t file_bytes, Error *err)
{
    ParquetReader *r = xcalloc(1, sizeof *r);
    buf_init(&r->equals, PARQUET_VALUE_MAX);
    if (!fetch_footer(r, source, ctx, file_bytes, err)) {
        free(r);
        return NULL;
    }
    r->pages = page_reader_new(source, ctx);
    want_all(r);
    begin_again(r);
    return r;
}

void parquet_reader_free(ParquetReader *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < PARQUET_COLUMNS_MAX; i++) {
        column_reader_free(r->columns[i]);
    }
    column_reader_free(r->search);
    page_locations_done(&r->locations);
    free(r->may);
    buf_done(&r->equals);
    row_digest_free(r->digest);
    page_reader_free(r->pages);
    footer_done(&r->footer);
    free(r);
}

size_t parquet_reader_columns(const ParquetReader *r, const ParquetColumn **ret)
{
    *ret = r->footer.columns;
    return r->footer.count;
}

const char *parquet_reader_metadata(const ParquetReader *r, const char *name)
{
    for (size_t i = 0; i < r->footer.pairs; i++) {
        if (strcmp(r->footer.pair_names[i], name) == 0) {
            return r->footer.pair_values[i];
        }
    }
    return NULL;
}

uint64_t parquet_reader_rows(const ParquetReader *r)
{
    return r->footer.rows;
}

size_t parquet_reader_groups(const ParquetReader *r)
{
    return r->footer.group_count;
}

uint64_t parquet_reader_pages(const ParquetReader *r)
{
    return page_reader_count(r->pages);
}

ParquetTotals parquet_reader_totals(const ParquetReader *r)
{
    return r->digest != NULL ? row_digest_totals(r->digest) : (ParquetTotals){0};
}

// ---- the columns to read ----

static Str equals_of(const ParquetReader *r)
{
    return r->equals.len > 0 ? buf_view(&r->equals) : STR_EMPTY;
}

static int column_of(const ParquetReader *r, const char *name)
{
    for (size_t i = 0; i < r->footer.count; i++) {
        if (strcmp(r->footer.names[i], name) == 0) {
            return (int)i;
        }
    }
    return NO_COLUMN;
}

bool parquet_reader_want(ParquetReader *r, const char *const *names, size_t count, Error *err)
{
    if (count > PARQUET_COLUMNS_MAX) {
        return error_set(err, ERROR_PERMANENT, "parquet: %zu columns are wanted", count);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) == 0) {
                return error_set(
                    err, ERROR_PERMANENT, "parquet: column '%s' is wanted twice", names[i]);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        r->wanted[i] = column_of(r, names[i]);
    }
    r->wanted_count = count;
    begin_again(r);
    return true;
}

bool parquet_reader_find(ParquetReader *r, const char *column, Str equals, Error *err)
{
    int found = column_of(r, column);
    if (found != NO_COLUMN && !is_bytes(r->footer.columns[found].type)) {
        return error_set(
            err, ERROR_PERMANENT, "parquet: column '%s' is a number: not searched", column);
    }
    buf_clear(&r->equals);
    if (!buf_str(&r->equals, equals)) {
        found = NO_COLUMN; // longer than any value
    }
    column_reader_free(r->search);
    r->search = found != NO_COLUMN ? column_reader_new(&r->footer.columns[found], r->pages) : NULL;
    r->searching = true;
    r->found_column = found;
    begin_again(r);
    return true;
}

// ---- rows ----

static void enter_columns(ParquetReader *r, const GroupInfo *group)
{
    for (size_t i = 0; i < r->wanted_count; i++) {
        int column = r->wanted[i];
        if (column == NO_COLUMN) {
            continue;
        }
        if (r->columns[column] == NULL) {
            r->columns[column] = column_reader_new(&r->footer.columns[column], r->pages);
        }
        column_reader_begin(r->columns[column], &group->chunks[column]);
    }
}

// Which pages of the searched column are worth a look.
static bool enter_search(ParquetReader *r, const ChunkInfo *chunk, bool *ret_may, Error *err)
{
    Str equals = equals_of(r);
    const char *name = r->footer.names[r->found_column];
    if (!chunk_may_have(chunk, r->pages, equals, ret_may, err)) {
        return error_wrap(err, "parquet: column '%s'", name);
    }
    if (!*ret_may) {
        return true;
    }
    column_reader_begin(r->search, chunk);
    if (!page_locations_read(&r->locations, chunk, r->pages, err)) {
        return error_wrap(err, "parquet: column '%s'", name);
    }
    r->may = xrealloc(r->may, r->locations.count + 1);
    return pages_may_have(chunk, r->pages, equals, r->may, r->locations.count, err) ||
           error_wrap(err, "parquet: column '%s'", name);
}

// The next row group that may have a row. *ret_end: there is none.
static bool enter_group(ParquetReader *r, bool *ret_end, Error *err)
{
    *ret_end = false;
    for (; r->group < r->footer.group_count; r->group++) {
        const GroupInfo *group = &r->footer.groups[r->group];
        bool may = !r->searching;
        if (r->searching && r->found_column != NO_COLUMN &&
            !enter_search(r, &group->chunks[r->found_column], &may, err)) {
            return false;
        }
        if (may) {
            enter_columns(r, group);
            r->in_group = true;
            r->row = 0;
            return true;
        }
    }
    *ret_end = true;
    return true;
}

static void leave_group(ParquetReader *r)
{
    r->in_group = false;
    r->group++;
}

// Passes over pages that cannot have the value. false: no row is left in the group.
static bool skip_pages(ParquetReader *r)
{
    const PageLocations *all = &r->locations;
    size_t i = page_locations_find(all, r->row);
    if (i == all->count || r->may[i]) {
        return true;
    }
    while (i < all->count && !r->may[i]) {
        i++;
    }
    if (i == all->count) {
        return false;
    }
    r->row = all->pages[i].first;
    return true;
}

// To the next row that matches. *ret_found false: none in this group.
static bool search_group(ParquetReader *r, bool *ret_found, Error *err)
{
    uint64_t rows = r->footer.groups[r->group].rows;
    Str equals = equals_of(r);
    *ret_found = false;
    for (; r->row < rows && !*ret_found; r->row++) {
        ParquetValue value;
        if (!skip_pages(r)) {
            return true;
        }
        if (!column_reader_seek(r->search, r->row, err) ||
            !column_reader_value(r->search, &value, err)) {
            return false;
        }
        *ret_found = !value.null && str_eq(value.bytes, equals);
    }
    r->row -= *ret_found ? 1 : 0; // the row itself
    return true;
}

// The row group at hand has the next row at r->row. *ret_end: there is none.
static bool next_row(ParquetReader *r, bool *ret_end, Error *err)
{
    for (;;) {
        if (!r->in_group && (!enter_group(r, ret_end, err) || *ret_end)) {
            return *ret_end;
        }
        bool found = r->row < r->footer.groups[r->group].rows;
        if (r->searching && !search_group(r, &found, err)) {
            return false;
        }
        if (found) {
            *ret_end = false;
            return true;
        }
        leave_group(r);
    }
}

bool parquet_reader_next(ParquetReader *r, ParquetValue *values, bool *ret_end, Error *err)
{
    bool end = false;
    if (!next_row(r, &end, err)) {
        return false;
    }
    *ret_end = end;
    if (end) {
        return true;
    }
    ParquetValue in_order[PARQUET_COLUMNS_MAX];
    for (size_t i = 0; i < r->wanted_count; i++) {
        int column = r->wanted[i];
        values[i] = (ParquetValue){.null = true, .bytes = STR_EMPTY};
        if (column == NO_COLUMN) {
            continue;
        }
        if ((r->searching && !column_reader_seek(r->columns[column], r->row, err)) ||
            !column_reader_value(r->columns[column], &values[i], err)) {
            return false;
        }
        in_order[column] = values[i];
    }
    if (r->digest != NULL) {
        row_digest_add(r->digest, in_order);
    }
    r->row++;
    return true;
}
