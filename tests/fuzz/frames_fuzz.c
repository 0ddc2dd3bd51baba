// SPDX-License-Identifier: Apache-2.0
// links: stentor_bus
// Any bytes as an accept row: refused as a permanent fault, or frames that come back the same from
// a row of either head.
#include <stdlib.h>
#include <string.h>

#include "common/bus/events/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static Str row_of(Str head, Str packed, Arena *arena)
{
    char *row = arena_alloc(arena, head.len + packed.len);
    memcpy(row, head.ptr, head.len);
    if (packed.len > 0) {
        memcpy(row + head.len, packed.ptr, packed.len);
    }
    return str_of(row, head.len + packed.len);
}

static void require_same(Str row, const Frame *frames, size_t count, Arena *arena)
{
    Frame *back;
    size_t back_count;
    Error err = {0};
    require(frames_unpack(row, arena, &back, &back_count, &err) && back_count == count);
    for (size_t i = 0; i < count; i++) {
        require(back[i].kind == frames[i].kind);
        require(str_eq(str_from(back[i].out.subject), str_from(frames[i].out.subject)));
        require(str_eq(back[i].out.event_id, frames[i].out.event_id));
        require(str_eq(back[i].out.payload, frames[i].out.payload));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Frame *frames;
    size_t count;
    Error err = {0};
    if (frames_unpack(str_of(data, size), arena, &frames, &count, &err)) {
        Str packed = frames_pack(frames, count, arena);
        require_same(row_of(FRAMES_HEAD, packed, arena), frames, count, arena);
        Str compressed = frames_compress(packed, arena);
        require_same(row_of(FRAMES_HEAD_ZSTD, compressed, arena), frames, count, arena);
    } else {
        require(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
