// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// CSV and NDJSON files of `batch add`, `recipient import` and `suppress import`, by the one reader.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/api/suppress_line.h"
#include "services/cli/import/member_row.h"
#include "services/cli/import/recipient_row.h"
#include "services/cli/import/suppress_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static RecordFile open_bytes(const uint8_t *data, size_t size, const RecordKind *kind, bool csv)
{
    RecordFile file;
    FILE *stream = fmemopen((void *)(uintptr_t)data, size, "rb");
    assert(stream != NULL);
    record_file_init(&file, kind, stream, csv);
    return file;
}

// What every reading holds: lines only go on, each error has its words, an end has read all.
static bool check(
    const RecordFile *file, RecordRead got, const Error *err, size_t *line, size_t size)
{
    assert(file->line >= *line);
    *line = file->line;
    assert(got == RECORD_READ || got == RECORD_END || err->text[0] != '\0');
    assert(got != RECORD_END || (size_t)file->bytes == size);
    return got == RECORD_READ || got == RECORD_BROKEN;
}

static void read_lines(const uint8_t *data, size_t size, const RecordKind *kind, bool csv)
{
    RecordFile file = open_bytes(data, size, kind, csv);
    Buf out;
    size_t line = 0;
    bool more = true;
    buf_init(&out, 64 * 1024 * 1024);
    while (more) {
        Error err = {0};
        RecordRead got = record_file_next_line(&file, &out, &err);
        if (got == RECORD_READ) {
            assert(out.len > 0 && out.ptr[out.len - 1] == '\n');
            assert(memchr(out.ptr, '\n', out.len - 1) == NULL);
        } else {
            assert(out.len == 0);
        }
        buf_clear(&out);
        more = check(&file, got, &err, &line, size);
    }
    buf_done(&out);
    record_file_close(&file);
}

static void read_suppressions(const uint8_t *data, size_t size, bool csv)
{
    RecordFile file = open_bytes(data, size, &suppress_records, csv);
    SuppressReading reading = {
        .defaults = {.channel = CHANNEL_EMAIL, .reason = SUPPRESSION_MANUAL},
        .tenant = STR("acme"),
        .hash_key = STR("0123456789abcdef0123456789abcdef"),
    };
    Arena *arena = arena_new(0);
    Buf out;
    size_t line = 0;
    bool more = true;
    buf_init(&out, 64 * 1024 * 1024);
    while (more) {
        Error err = {0};
        SuppressLine says;
        arena_reset(arena);
        buf_clear(&out);
        RecordRead got = record_file_next_line(&file, &out, &err);
        more = check(&file, got, &err, &line, size);
        if (got != RECORD_READ) {
            continue;
        }
        if (!suppress_line_parse(&reading, buf_view(&out), arena, &says, &err)) {
            assert(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        } else {
            assert(channel_name(says.channel)[0] != '\0');
            assert(suppression_reason_name(says.reason)[0] != '\0');
            assert(says.note.len <= SUPPRESSION_NOTE_MAX);
        }
    }
    buf_done(&out);
    arena_free(arena);
    record_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0; // no stream over nothing
    }
    for (int csv = 0; csv < 2; csv++) {
        read_lines(data, size, &recipient_records, csv == 1);
        read_lines(data, size, &member_records, csv == 1);
        read_suppressions(data, size, csv == 1);
    }
    return 0;
}
