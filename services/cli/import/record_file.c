// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/record_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 128 * 1024, WINDOW_MAX = 512 * 1024 };

// ---- life ----

bool record_format(
    const char *flag, const char *path, const char *otherwise, bool *ret_csv, Error *err)
{
    Str file = str_from(path);
    if (flag == NULL) {
        bool csv = str_ends(file, STR(".csv"));
        bool ndjson = str_ends(file, STR(".ndjson")) || str_ends(file, STR(".jsonl"));
        flag = csv ? "csv" : ndjson ? "ndjson" : otherwise;
    }
    if (flag == NULL) {
        return error_set(
            err, ERROR_USAGE, "'%s' ends with neither .csv nor .ndjson (HINT: --format csv|ndjson)",
            path);
    }
    *ret_csv = strcmp(flag, "csv") == 0;
    return *ret_csv || strcmp(flag, "ndjson") == 0 ||
           error_set(err, ERROR_USAGE, "--format is '%s': expected csv or ndjson", flag);
}

void record_file_init(RecordFile *out, const RecordKind *kind, FILE *file, bool csv)
{
    *out = (RecordFile){.kind = kind, .file = file, .csv = csv, .next_line = 1};
    buf_init(&out->window, WINDOW_MAX);
    out->names = arena_new(0);
    out->arena = arena_new(0);
}

bool record_file_open(
    RecordFile *out, const RecordKind *kind, const char *path, bool csv, Error *err)
{
    struct stat about;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return error_set(err, ERROR_USAGE, "cannot open '%s': %s", path, strerror(errno));
    }
    record_file_init(out, kind, file, csv);
    if (fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode)) {
        out->size_bytes = about.st_size;
    }
    return true;
}

void record_file_close(RecordFile *file)
{
    buf_done(&file->window);
    arena_free(file->names);
    arena_free(file->arena);
    if (file->file != stdin) {
        (void)fclose(file->file);
    }
}

// ---- the window ----

static Str unread(const RecordFile *file)
{
    return str_slice(buf_view(&file->window), file->used, file->window.len);
}

static void drop(RecordFile *file, size_t bytes, size_t lines)
{
    file->used += bytes;
    file->bytes += (int64_t)bytes;
    file->next_line += lines;
}

static bool fill(RecordFile *file, Error *err)
{
    static const Str mark = {"\xef\xbb\xbf", 3};
    buf_drop_front(&file->window, file->used);
    file->used = 0;
    if (!buf_reserve(&file->window, CHUNK)) {
        return error_set(err, ERROR_PERMANENT, "the line is too long");
    }
    size_t got = fread(file->window.ptr + file->window.len, 1, CHUNK, file->file);
    file->window.len += got;
    file->at_end = got == 0;
    if (file->bytes == 0 && str_starts(unread(file), mark)) {
        drop(file, mark.len, 0);
    }
    return ferror(file->file) == 0 ||
           error_set(err, ERROR_CONFIG, "cannot read the file: %s", strerror(errno));
}

// Goes on behind the next line break. false: it is not in the window.
static bool skip_line(RecordFile *file)
{
    Str window = unread(file);
    ptrdiff_t end = str_find(window, '\n');
    file->skipping = end < 0;
    drop(file, end < 0 ? window.len : (size_t)end + 1, end < 0 ? 0 : 1);
    return !file->skipping;
}

// ---- one record ----

typedef enum Step { STEP_AGAIN, STEP_MORE, STEP_DONE } Step;

bool record_columns_check(const RecordColumns *columns, Error *err)
{
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->names[i][0] == '\0') {
            return error_set(err, ERROR_PERMANENT, "the header's column %zu has no name", i + 1);
        }
        for (size_t n = 0; n < i; n++) {
            if (strcmp(columns->names[n], columns->names[i]) == 0) {
                return error_set(
                    err, ERROR_PERMANENT, "the header names '%.60s' twice", columns->names[i]);
            }
        }
    }
    return true;
}

static bool take_header(RecordFile *file, const CsvRecord *record, Error *err)
{
    for (size_t i = 0; i < record->count; i++) {
        Str name = str_trim(record->fields[i]);
        if (str_find(name, '\0') >= 0) {
            return error_set(err, ERROR_PERMANENT, "the header's column %zu is not text", i + 1);
        }
        file->columns.names[i] = arena_cstr(file->names, name);
    }
    file->columns.count = record->count;
    return file->kind->check_header(&file->columns, err);
}

static RecordRead take_row(RecordFile *file, CsvRecord *record, Record *ret, Error *err)
{
    size_t wanted = file->columns.count;
    if (record->count > wanted || (record->count < wanted && !file->kind->short_rows)) {
        (void)error_set(
            err, ERROR_PERMANENT, "%zu fields, the header has %zu", record->count, wanted);
        return RECORD_BROKEN;
    }
    Str *fields = arena_array(file->arena, wanted, sizeof *fields);
    for (size_t i = 0; i < wanted; i++) {
        fields[i] = i < record->count ? record->fields[i] : STR_EMPTY;
    }
    *ret = (Record){.fields = fields};
    return RECORD_READ;
}

static Step step_csv(RecordFile *file, Record *ret, RecordRead *ret_read, Error *err)
{
    CsvRecord record;
    CsvVerdict verdict = csv_read(unread(file), file->at_end, file->arena, &record);
    bool header = file->columns.count == 0;
    if (verdict == CSV_MORE) {
        return STEP_MORE;
    }
    if (verdict == CSV_END) {
        bool headless = header && file->bytes > 0;
        *ret_read = headless ? RECORD_FAILED : RECORD_END;
        if (headless) {
            (void)error_set(err, ERROR_PERMANENT, "the first line names no column");
        }
        return STEP_DONE;
    }
    file->line = file->next_line;
    drop(file, record.bytes, record.lines);
    if (verdict == CSV_BROKEN) {
        file->skipping = record.lines == 0;
        *ret_read = header ? RECORD_FAILED : RECORD_BROKEN;
        (void)error_set(err, ERROR_PERMANENT, "%s", record.reason);
        return STEP_DONE;
    }
    if (record.count == 0) {
        return STEP_AGAIN; // a blank line
    }
    if (header) {
        *ret_read = RECORD_FAILED;
        return take_header(file, &record, err) ? STEP_AGAIN : STEP_DONE;
    }
    *ret_read = take_row(file, &record, ret, err);
    return STEP_DONE;
}

static Step step_ndjson(RecordFile *file, Record *ret, RecordRead *ret_read, Error *err)
{
    Str window = unread(file);
    ptrdiff_t end = str_find(window, '\n');
    if (end < 0 && !file->at_end && window.len <= file->kind->line_max) {
        return STEP_MORE;
    }
    if (window.len == 0) {
        *ret_read = RECORD_END;
        return STEP_DONE;
    }
    Str line = str_trim(str_slice(window, 0, end < 0 ? window.len : (size_t)end));
    bool fits = line.len <= file->kind->line_max;
    file->line = file->next_line;
    *ret = (Record){.line = line}; // stays in the window until the next fill
    (void)skip_line(file);
    if (line.len == 0) {
        return STEP_AGAIN;
    }
    *ret_read = fits ? RECORD_READ : RECORD_BROKEN;
    if (!fits) {
        (void)error_set(err, ERROR_PERMANENT, "longer than %zu bytes", file->kind->line_max);
    }
    return STEP_DONE;
}

RecordRead record_file_next(RecordFile *file, Record *ret, Error *err)
{
    RecordRead read = RECORD_END;
    for (;;) {
        arena_reset(file->arena);
        Step step = STEP_MORE;
        if (!file->skipping || skip_line(file)) {
            step = file->csv ? step_csv(file, ret, &read, err) : step_ndjson(file, ret, &read, err);
        } else if (file->at_end) {
            return RECORD_END;
        }
        if (step == STEP_DONE) {
            return read;
        }
        if (step == STEP_MORE && !fill(file, err)) {
            return RECORD_FAILED;
        }
    }
}

RecordRead record_file_next_line(RecordFile *file, Buf *out, Error *err)
{
    Record record;
    RecordRead read = record_file_next(file, &record, err);
    if (read != RECORD_READ) {
        return read;
    }
    if (record.fields != NULL) {
        size_t before = out->len;
        if (file->kind->write_row(&file->columns, record.fields, out, err)) {
            return RECORD_READ;
        }
        out->len = before;
        return RECORD_BROKEN;
    }
    buf_str(out, record.line);
    buf_char(out, '\n');
    return RECORD_READ;
}
