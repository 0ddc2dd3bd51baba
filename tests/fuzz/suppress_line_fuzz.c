// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// Any bytes as an import: up to the first line break they are the header of a CSV file, then one of
// its lines; and the whole as a line of NDJSON. A line is taken with names that exist, or refused
// as PERMANENT.
#include <stdlib.h>
#include <string.h>

#include "services/cli/import/suppress_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_line(const SuppressReading *reading, Str text, Arena *arena)
{
    SuppressLine line;
    Error err = {0};
    if (!suppress_line_parse(reading, text, arena, &line, &err)) {
        if (err.kind != ERROR_PERMANENT) {
            abort();
        }
    } else if (
        channel_name(line.channel)[0] == '\0' || suppression_reason_name(line.reason)[0] == '\0' ||
        line.note.len > SUPPRESSION_NOTE_MAX) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    SuppressReading reading = {
        .defaults = {.channel = CHANNEL_EMAIL, .reason = SUPPRESSION_MANUAL},
        .tenant = STR("acme"),
        .hash_key = STR("0123456789abcdef0123456789abcdef"),
    };
    Str rest = str_of(data, size);
    try_line(&reading, rest, arena);
    Str header = STR_EMPTY;
    Error err = {0};
    if (str_split(&rest, '\n', &header) && suppress_header_parse(header, &reading.columns, &err)) {
        try_line(&reading, rest, arena);
    }
    arena_free(arena);
    return 0;
}
