// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/parquet_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/bloom.h"
#include "common/parquet/checksum.h"
#include "common/parquet/row_digest.h"
#include "common/parquet/write/footer_writer.h"

struct ParquetWriter {
    ParquetColumn columns[PARQUET_COLUMNS_MAX];
    char names[PARQUET_COLUMNS_MAX][PARQUET_NAME_MAX + 1];
    size_t count;
    ColumnWriter *writers[PARQUET_COLUMNS_MAX];
    PagePacker *packer;
    ParquetSink sink;
    void *ctx;
    bool refused; // the sink did
    uint32_t group_rows, page_rows;
    uint32_t rows; // of the group under way
    uint64_t bytes;
    uint64_t packed_before; // of the row groups that are written
    uint64_t finished_rows;
    GroupEntry *groups;
    size_t group_count, group_cap;
    RowDigest *digest;
    Buf scratch;
};

static void check_column(const ParquetWriter *w, size_t i)
{
    const ParquetColumn *c = &w->columns[i];
    assert(c->name[0] != '\0');
    assert(c->encoding != PARQUET_DELTA || c->type == PARQUET_I64);
    assert(c->encoding != PARQUET_DICTIONARY || is_bytes(c->type));
    assert(c->logical != PARQUET_TIME_US || c->type == PARQUET_I64);
    assert(c->logical != PARQUET_I16 || c->type == PARQUET_I32);
    assert(c->logical != PARQUET_JSON || c->type == PARQUET_STRING);
    for (size_t k = 0; k < i; k++) {
        assert(strcmp(c->name, w->names[k]) != 0);
    }
    (void)c;
}

ParquetWriter *parquet_writer_new(
    const ParquetColumn *columns, size_t count, ParquetSink sink, void *ctx)
{
    assert(count > 0 && count <= PARQUET_COLUMNS_MAX);
    ParquetWriter *w = xcalloc(1, sizeof *w);
    w->count = count;
    w->sink = sink;
    w->ctx = ctx;
    w->group_rows = PARQUET_GROUP_ROWS;
    w->page_rows = PARQUET_PAGE_ROWS;
    w->packer = page_packer_new();
    buf_init(&w->scratch, FOOTER_MAX + TAIL_LEN);
    for (size_t i = 0; i < count; i++) {
        bool fits = str_to_c(str_from(columns[i].name), w->names[i], sizeof w->names[i]);
        assert(fits);
        (void)fits;
        w->columns[i] = columns[i];
        w->columns[i].name = w->names[i];
        check_column(w, i);
    }
    w->digest = row_digest_new(w->columns, count);
    return w;
}

void parquet_writer_shape(ParquetWriter *w, uint32_t group_rows, uint32_t page_rows)
{
    assert(w->writers[0] == NULL && page_rows > 0 && page_rows <= group_rows);
    w->group_rows = group_rows;
    w->page_rows = page_rows;
}

void parquet_writer_free(ParquetWriter *w)
{
    if (w == NULL) {
        return;
    }
    for (size_t g = 0; g < w->group_count; g++) {
        for (size_t i = 0; i < w->count; i++) {
            free(w->groups[g].chunks[i].pages);
        }
        free(w->groups[g].chunks);
    }
    for (size_t i = 0; i < w->count; i++) {
        column_writer_free(w->writers[i]);
    }
    free(w->groups);
    row_digest_free(w->digest);
    page_packer_free(w->packer);
    buf_done(&w->scratch);
    free(w);
}

static bool emit(void *ctx, const void *bytes, size_t len)
{
    ParquetWriter *w = ctx;
    w->refused = w->refused || !w->sink(w->ctx, bytes, len);
    w->bytes += len;
    return !w->refused;
}

static bool refuse(Error *err)
{
    return error_set(err, ERROR_TRANSIENT, "parquet: the file cannot be written");
}

static bool begin(ParquetWriter *w, Error *err)
{
    for (size_t i = 0; i < w->count; i++) {
        w->writers[i] = column_writer_new(&w->columns[i], w->packer, w->page_rows);
    }
    return emit(w, PARQUET_MAGIC, strlen(PARQUET_MAGIC)) || refuse(err);
}

// ---- row groups ----

static GroupEntry *add_group(ParquetWriter *w)
{
    if (w->group_count == w->group_cap) {
        w->group_cap = w->group_cap > 0 ? 2 * w->group_cap : 16;
        w->groups = xrealloc(w->groups, w->group_cap * sizeof *w->groups);
    }
    GroupEntry *group = &w->groups[w->group_count++];
    *group = (GroupEntry){
        .at = w->bytes,
        .rows = w->rows,
        .chunks = xcalloc(w->count, sizeof *group->chunks),
    };
    return group;
}

// What is in the scratch buffer goes to the file.
static bool emit_part(ParquetWriter *w, TailPart *ret)
{
    *ret = (TailPart){
        .at = w->bytes,
        .len = (uint32_t)w->scratch.len,
        .crc = parquet_crc32(0, w->scratch.ptr, w->scratch.len),
    };
    return emit(w, w->scratch.ptr, w->scratch.len);
}

// Filters are written behind their group, so that they need not be held.
static bool emit_bloom(ParquetWriter *w, ChunkEntry *chunk, const Buf *bits)
{
    if (bits->len == 0) {
        return true;
    }
    buf_clear(&w->scratch);
    footer_put_bloom(&w->scratch, bits->len);
    buf_str(&w->scratch, buf_view(bits));
    return emit_part(w, &chunk->bloom);
}

static bool end_group(ParquetWriter *w, Error *err)
{
    if (w->rows == 0) {
        return true;
    }
    GroupEntry *group = add_group(w);
    Buf blooms[PARQUET_COLUMNS_MAX];
    bool ok = true;
    for (size_t i = 0; i < w->count; i++) {
        ChunkEntry *chunk = &group->chunks[i];
        buf_init(&blooms[i], BLOOM_MAX);
        ok = column_writer_end(w->writers[i], w->bytes, emit, w, &blooms[i], chunk) && ok;
        group->raw += chunk->raw;
        group->packed += chunk->packed;
    }
    for (size_t i = 0; i < w->count; i++) {
        ok = ok && emit_bloom(w, &group->chunks[i], &blooms[i]);
        buf_done(&blooms[i]);
    }
    w->packed_before = page_packer_packed(w->packer);
    w->finished_rows += w->rows;
    w->rows = 0;
    return ok || refuse(err);
}

// ---- rows ----

static bool number_fits(const ParquetColumn *column, int64_t number)
{
    if (column->type == PARQUET_I32) {
        bool narrow = column->logical == PARQUET_I16;
        return narrow ? number >= INT16_MIN && number <= INT16_MAX
                      : number >= INT32_MIN && number <= INT32_MAX;
    }
    return true;
}

static bool check_value(const ParquetColumn *c, const ParquetValue *value, Error *err)
{
    if (value->null) {
        return c->optional ||
               error_set(err, ERROR_PERMANENT, "parquet: column '%s' must not be null", c->name);
    }
    if (!is_bytes(c->type)) {
        return number_fits(c, value->number) ||
               error_set(
                   err, ERROR_PERMANENT, "parquet: column '%s': %lld does not fit", c->name,
                   (long long)value->number);
    }
    if (value->bytes.len > PARQUET_VALUE_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "parquet: column '%s': a value of %zu bytes, at most %d", c->name,
            value->bytes.len, PARQUET_VALUE_MAX);
    }
    return c->type == PARQUET_BYTES || is_text(value->bytes) ||
           error_set(err, ERROR_PERMANENT, "parquet: column '%s' is not UTF-8", c->name);
}

// Of pages that wait for the end of their row group.
static uint64_t held_bytes(const ParquetWriter *w)
{
    return page_packer_packed(w->packer) - w->packed_before;
}

bool parquet_writer_row(ParquetWriter *w, const ParquetValue *values, Error *err)
{
    for (size_t i = 0; i < w->count; i++) {
        if (!check_value(&w->columns[i], &values[i], err)) {
            return false;
        }
    }
    if (w->refused || (w->writers[0] == NULL && !begin(w, err))) {
        return refuse(err);
    }
    for (size_t i = 0; i < w->count; i++) {
        column_writer_add(w->writers[i], &values[i]);
    }
    row_digest_add(w->digest, values);
    w->rows++;
    bool full = w->rows == w->group_rows || held_bytes(w) >= PARQUET_GROUP_BYTES;
    return !full || end_group(w, err);
}

uint64_t parquet_writer_bytes(const ParquetWriter *w)
{
    return w->bytes + held_bytes(w);
}

// ---- the end ----

static bool emit_indexes(ParquetWriter *w)
{
    bool ok = true;
    for (size_t i = 0; i < w->group_count * w->count && ok; i++) {
        ChunkEntry *chunk = &w->groups[i / w->count].chunks[i % w->count];
        buf_clear(&w->scratch);
        if (footer_put_index(&w->scratch, &w->columns[i % w->count], chunk)) {
            ok = emit_part(w, &chunk->index);
        }
    }
    for (size_t i = 0; i < w->group_count * w->count && ok; i++) {
        ChunkEntry *chunk = &w->groups[i / w->count].chunks[i % w->count];
        buf_clear(&w->scratch);
        footer_put_offsets(&w->scratch, chunk);
        ok = emit_part(w, &chunk->offsets);
    }
    return ok;
}

bool parquet_writer_finish(
    ParquetWriter *w, const char *const (*metadata)[2], size_t pairs, ParquetTotals *ret,
    Error *err)
{
    assert(pairs < PARQUET_METADATA_MAX);
    if (w->writers[0] == NULL && !begin(w, err)) {
        return false;
    }
    if (!end_group(w, err) || !emit_indexes(w)) {
        return refuse(err);
    }
    const FileEntry file = {
        .columns = w->columns,
        .column_count = w->count,
        .groups = w->groups,
        .group_count = w->group_count,
        .rows = w->finished_rows,
        .metadata = metadata,
        .pairs = pairs,
    };
    buf_clear(&w->scratch);
    if (!footer_put(&w->scratch, &file)) {
        return error_set(err, ERROR_PERMANENT, "parquet: a footer of over %d bytes", FOOTER_MAX);
    }
    if (!emit(w, w->scratch.ptr, w->scratch.len)) {
        return refuse(err);
    }
    *ret = row_digest_totals(w->digest);
    return true;
}
