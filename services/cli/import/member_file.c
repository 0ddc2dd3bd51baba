// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/member_file.h"

#include <errno.h>
#include <string.h>

enum { READ_BYTES = 64 * 1024, WINDOW_MAX = 2 * MEMBER_LINE_MAX };

static const char OWN_PREFIX[] = "variables.";

void member_file_init(MemberFile *out, FILE *file, bool csv)
{
    *out = (MemberFile){.file = file, .csv = csv, .next_line = 1};
    buf_init(&out->window, WINDOW_MAX);
    out->arena = arena_new(0);
}

void member_file_done(MemberFile *file)
{
    buf_done(&file->window);
    arena_free(file->arena);
}

// false: the file cannot be read.
static bool fill(MemberFile *f, Error *err)
{
    if (f->at_end || f->window.len + READ_BYTES > WINDOW_MAX) {
        return true;
    }
    (void)buf_reserve(&f->window, READ_BYTES);
    size_t got = fread(f->window.ptr + f->window.len, 1, READ_BYTES, f->file);
    f->window.len += got;
    f->at_end = got < READ_BYTES && feof(f->file) != 0;
    return ferror(f->file) == 0 ||
           error_set(err, ERROR_PERMANENT, "cannot read the file: %s", strerror(errno));
}

static void consume(MemberFile *f, size_t bytes, size_t lines)
{
    buf_drop_front(&f->window, bytes);
    f->bytes += (int64_t)bytes;
    f->line = f->next_line;
    f->next_line += lines;
}

// ---- NDJSON ----

static MemberRead too_long(Error *err)
{
    (void)error_set(err, ERROR_PERMANENT, "longer than %d bytes", MEMBER_LINE_MAX);
    return MEMBER_BROKEN;
}

// What is left of a line that did not fit into the window.
static bool skip_rest(MemberFile *f)
{
    ptrdiff_t end = str_find(buf_view(&f->window), '\n');
    size_t bytes = end < 0 ? f->window.len : (size_t)end + 1;
    buf_drop_front(&f->window, bytes);
    f->bytes += (int64_t)bytes;
    f->skipping = end < 0 && !f->at_end;
    return !f->skipping;
}

static MemberRead next_line(MemberFile *f, Buf *out, Error *err)
{
    for (;;) {
        if (!fill(f, err)) {
            return MEMBER_FAILED;
        }
        if (f->skipping && !skip_rest(f)) {
            continue;
        }
        Str view = buf_view(&f->window);
        ptrdiff_t end = str_find(view, '\n');
        if (end < 0 && view.len > MEMBER_LINE_MAX) {
            consume(f, view.len, 1);
            f->skipping = !f->at_end;
            return too_long(err);
        }
        if (end < 0 && !f->at_end) {
            continue;
        }
        if (view.len == 0) {
            return MEMBER_END;
        }
        size_t len = end < 0 ? view.len : (size_t)end;
        Str line = str_trim(str_slice(view, 0, len));
        bool fits = line.len <= MEMBER_LINE_MAX;
        if (line.len > 0 && fits) {
            (void)buf_str(out, line);
            (void)buf_char(out, '\n');
        }
        bool empty = line.len == 0;
        consume(f, len + (end < 0 ? 0 : 1), 1);
        if (!fits) {
            return too_long(err);
        }
        if (!empty) {
            return MEMBER_LINE;
        }
    }
}

// ---- CSV ----

static bool take_header(MemberFile *f, const CsvRecord *header, Error *err)
{
    bool addressed = false;
    for (size_t i = 0; i < header->count; i++) {
        Str name = str_trim(header->fields[i]);
        if (i == 0 && str_starts(name, STR("\xef\xbb\xbf"))) {
            name = str_slice(name, 3, name.len); // a byte order mark
        }
        if (name.len == 0 || !str_to_c(name, f->columns[i], MEMBER_COLUMN_MAX)) {
            return error_set(
                err, ERROR_PERMANENT, "the header's column %zu has no name of 1 to %d bytes", i + 1,
                MEMBER_COLUMN_MAX - 1);
        }
        for (size_t n = 0; n < i; n++) {
            if (strcmp(f->columns[n], f->columns[i]) == 0) {
                return error_set(
                    err, ERROR_PERMANENT, "the header names '%s' twice", f->columns[i]);
            }
        }
        addressed = addressed || str_eq(name, STR("to")) || str_eq(name, STR("recipient_id"));
    }
    f->column_count = header->count;
    return addressed ||
           error_set(
               err, ERROR_PERMANENT, "the header has neither a column 'to' nor one 'recipient_id'");
}

static bool is_own_field(const char *name)
{
    return strcmp(name, "to") == 0 || strcmp(name, "name") == 0 ||
           strcmp(name, "recipient_id") == 0 || strcmp(name, "locale") == 0;
}

static void add_pair(Buf *out, const char *before, const char *name, Str value)
{
    buf_cstr(out, before);
    buf_json(out, str_from(name));
    buf_char(out, ':');
    buf_json(out, value);
}

static bool write_row(const MemberFile *f, const CsvRecord *row, Buf *out, Error *err)
{
    if (row->count != f->column_count) {
        return error_set(
            err, ERROR_PERMANENT, "%zu fields, the header has %zu", row->count, f->column_count);
    }
    const char *before = "{";
    for (size_t i = 0; i < row->count; i++) {
        if (is_own_field(f->columns[i]) && row->fields[i].len > 0) {
            add_pair(out, before, f->columns[i], row->fields[i]);
            before = ",";
        }
    }
    buf_cstr(out, before);
    buf_cstr(out, "\"variables\":");
    before = "{";
    for (size_t i = 0; i < row->count; i++) {
        const char *name = f->columns[i];
        if (!is_own_field(name)) {
            bool prefixed = strncmp(name, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0;
            add_pair(out, before, prefixed ? name + sizeof OWN_PREFIX - 1 : name, row->fields[i]);
            before = ",";
        }
    }
    buf_cstr(out, before[0] == '{' ? "{}}\n" : "}}\n");
    return true;
}

static MemberRead take_record(MemberFile *f, const CsvRecord *record, Buf *out, Error *err)
{
    if (f->column_count == 0) {
        return take_header(f, record, err) ? MEMBER_LINE : MEMBER_FAILED;
    }
    return write_row(f, record, out, err) ? MEMBER_LINE : MEMBER_BROKEN;
}

static MemberRead next_record(MemberFile *f, Buf *out, Error *err)
{
    for (;;) {
        if (!fill(f, err)) {
            return MEMBER_FAILED;
        }
        CsvRecord record = {.count = 0};
        arena_reset(f->arena);
        CsvVerdict verdict = csv_read(buf_view(&f->window), f->at_end, f->arena, &record);
        if (verdict == CSV_MORE) {
            continue;
        }
        if (verdict == CSV_END) {
            return MEMBER_END;
        }
        bool header = f->column_count == 0;
        MemberRead read = MEMBER_LINE;
        if (verdict == CSV_BROKEN) {
            (void)error_set(err, ERROR_PERMANENT, "%s", record.reason);
            read = header ? MEMBER_FAILED : MEMBER_BROKEN;
        } else if (record.count > 0) {
            read = take_record(f, &record, out, err);
        }
        consume(f, record.bytes, record.lines);
        bool blank = verdict == CSV_RECORD && record.count == 0;
        if (read != MEMBER_LINE || (!blank && !header)) {
            return read;
        }
    }
}

MemberRead member_file_next(MemberFile *file, Buf *out, Error *err)
{
    return file->csv ? next_record(file, out, err) : next_line(file, out, err);
}
