// SPDX-License-Identifier: Apache-2.0
// links: stentor_find
// Any bytes as an event of STATUS, behind a byte that chooses its status: folded into entries of
// its tenant, or refused as PERMANENT without any.
#include <stdlib.h>

#include "common/find/find_fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const subjects[] = {
    "ntf.status.acme.email.queued", "ntf.status.acme.sms.sent", "ntf.status.acme.email.suppressed",
    "ntf.status.acme.email.opened"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Error err = {0};
    char file[132];
    if (size == 0) {
        return 0;
    }
    master_key_generate(file);
    MasterKey *master = master_key_parse(str_from(file), &err);
    Arena *arena = arena_new(0);
    FindFold *fold = find_fold_new(master);
    BusMessage message = {
        .subject = str_from(subjects[data[0] % 4]),
        .payload = str_of(data + 1, size - 1),
        .stored_at_us = INT64_C(1800000000000000)};
    bool folded = find_fold_event(fold, &message, arena, &err);
    size_t count = 0;
    const FindRow *rows = find_fold_rows(fold, &count);
    if (!folded && (err.kind != ERROR_PERMANENT || count != 0)) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(rows[i].tenant, STR("acme")) || rows[i].id.len != ULID_LEN + 4) {
            abort();
        }
    }
    find_fold_free(fold);
    arena_free(arena);
    master_key_free(master);
    return 0;
}
