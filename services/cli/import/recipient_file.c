// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/recipient_file.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 128 * 1024, WINDOW_MAX = 512 * 1024 };

void recipient_file_init(RecipientFile *out, FILE *file, bool csv)
{
    *out = (RecipientFile){.file = file, .csv = csv, .next_line = 1};
    buf_init(&out->window, WINDOW_MAX);
    out->arena = arena_new(0);
}

void recipient_file_done(RecipientFile *file)
{
    buf_done(&file->window);
    arena_free(file->arena);
}

static Str unread(const RecipientFile *file)
{
    return str_slice(buf_view(&file->window), file->used, file->window.len);
}

static bool fill(RecipientFile *file, Error *err)
{
    buf_drop_front(&file->window, file->used);
    file->used = 0;
    if (!buf_reserve(&file->window, CHUNK)) {
        return error_set(err, ERROR_PERMANENT, "line %zu is too long", file->next_line);
    }
    size_t got = fread(file->window.ptr + file->window.len, 1, CHUNK, file->file);
    file->window.len += got;
    file->at_end = got == 0;
    if (ferror(file->file) != 0) {
        return error_set(err, ERROR_CONFIG, "cannot read: %s", strerror(errno));
    }
    return true;
}

static void drop(RecipientFile *file, size_t bytes, size_t lines)
{
    file->used += bytes;
    file->bytes += (int64_t)bytes;
    file->next_line += lines;
}

// Goes on behind the next line break. false: it is not in the window.
static bool skip_line(RecipientFile *file)
{
    Str window = unread(file);
    ptrdiff_t end = str_find(window, '\n');
    file->skipping = end < 0;
    drop(file, end < 0 ? window.len : (size_t)end + 1, end < 0 ? 0 : 1);
    return !file->skipping;
}

typedef enum Step { STEP_AGAIN, STEP_MORE, STEP_DONE } Step;

static Step step_csv(RecipientFile *file, Buf *out, RecipientRead *ret, Error *err)
{
    CsvRecord record;
    arena_reset(file->arena);
    CsvVerdict verdict = csv_read(unread(file), file->at_end, file->arena, &record);
    if (verdict == CSV_MORE) {
        return STEP_MORE;
    }
    if (verdict == CSV_END) {
        *ret = RECIPIENT_END;
        return STEP_DONE;
    }
    file->line = file->next_line;
    drop(file, record.bytes, record.lines);
    if (verdict == CSV_BROKEN) {
        file->skipping = record.lines == 0;
        *ret = file->has_columns ? RECIPIENT_BROKEN : RECIPIENT_FAILED;
        (void)error_set(err, ERROR_PERMANENT, "%s", record.reason);
        return STEP_DONE;
    }
    if (!file->has_columns) {
        file->has_columns = row_columns(&record, &file->columns, err);
        *ret = RECIPIENT_FAILED;
        return file->has_columns ? STEP_AGAIN : STEP_DONE;
    }
    if (record.count == 0) {
        return STEP_AGAIN; // a blank line
    }
    *ret =
        recipient_row_json(&file->columns, &record, out, err) ? RECIPIENT_LINE : RECIPIENT_BROKEN;
    return STEP_DONE;
}

static Step step_ndjson(RecipientFile *file, Buf *out, RecipientRead *ret, Error *err)
{
    Str window = unread(file);
    ptrdiff_t end = str_find(window, '\n');
    if (end < 0 && !file->at_end && window.len <= CSV_RECORD_MAX) {
        return STEP_MORE;
    }
    if (window.len == 0) {
        *ret = RECIPIENT_END;
        return STEP_DONE;
    }
    Str line = str_trim(str_slice(window, 0, end < 0 ? window.len : (size_t)end));
    bool fits = line.len <= CSV_RECORD_MAX;
    file->line = file->next_line;
    if (fits && line.len > 0) {
        buf_str(out, line);
        buf_char(out, '\n');
    }
    (void)skip_line(file);
    if (line.len == 0) {
        return STEP_AGAIN;
    }
    *ret = fits ? RECIPIENT_LINE : RECIPIENT_BROKEN;
    if (!fits) {
        (void)error_set(err, ERROR_PERMANENT, "longer than %d bytes", (int)CSV_RECORD_MAX);
    }
    return STEP_DONE;
}

RecipientRead recipient_file_next(RecipientFile *file, Buf *out, Error *err)
{
    RecipientRead result = RECIPIENT_END;
    for (;;) {
        if (file->skipping && !skip_line(file)) {
            if (file->at_end) {
                return RECIPIENT_END;
            }
            if (!fill(file, err)) {
                return RECIPIENT_FAILED;
            }
            continue;
        }
        Step step =
            file->csv ? step_csv(file, out, &result, err) : step_ndjson(file, out, &result, err);
        if (step == STEP_DONE) {
            return result;
        }
        if (step == STEP_MORE && !fill(file, err)) {
            return RECIPIENT_FAILED;
        }
    }
}
