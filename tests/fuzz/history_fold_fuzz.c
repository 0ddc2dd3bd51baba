// SPDX-License-Identifier: Apache-2.0
// links: svc_archiver
// Any bytes as an event of REQUEST or STATUS: they are folded, or refused as PERMANENT and nothing
// of them is kept.
#include <stdlib.h>

#include "common/history/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fold_once(const char *stream, Str payload)
{
    Arena *arena = arena_new(0);
    Fold *fold = fold_new();
    BusMessage message = {
        .stream = stream,
        .payload = payload,
        .sequence = 1,
        .stored_at_us = INT64_C(1763648970000000)};
    Error err = {0};
    size_t rows = 0;
    bool folded = fold_event(fold, &message, arena, &err);
    fold_rows(fold, &rows);
    if (folded != (rows == 1) || (!folded && err.kind != ERROR_PERMANENT)) {
        abort();
    }
    fold_free(fold);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str payload = str_of(data, size);
    fold_once("STATUS", payload);
    fold_once("REQUEST_NORMAL", payload);
    return 0;
}
