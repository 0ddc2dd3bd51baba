// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// Any bytes as a line of an export of CONFIG: refused as PERMANENT, or an entry that written again
// is read again as the same.
#include <stdlib.h>
#include <string.h>

#include "services/cli/config/config_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(ConfigLine *line, Arena *arena)
{
    Buf out;
    ConfigTotal written = {0}, read = {0};
    ConfigLineKind kind;
    ConfigLine again;
    buf_init(&out, 4 * 1024 * 1024);
    config_line_write(&out, line, &written, arena);
    Str text = str_slice(buf_view(&out), 0, out.len - 1);
    if (!config_line_read(text, &read, arena, &kind, &again, NULL) || kind != CONFIG_LINE_ENTRY ||
        !str_eq(again.subject, line->subject) || !str_eq(again.payload, line->payload) ||
        memcmp(&written, &read, sizeof read) != 0) {
        abort();
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    ConfigTotal total = {0};
    ConfigLineKind kind;
    ConfigLine line;
    Error err = {0};
    if (!config_line_read(str_of((const char *)data, size), &total, arena, &kind, &line, &err)) {
        if (err.kind != ERROR_PERMANENT) {
            abort();
        }
    } else if (kind == CONFIG_LINE_ENTRY) {
        write_and_read(&line, arena);
    }
    arena_free(arena);
    return 0;
}
