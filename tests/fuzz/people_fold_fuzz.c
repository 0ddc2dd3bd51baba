// SPDX-License-Identifier: Apache-2.0
// links: svc_digest_flusher
// Any bytes as an event of PEOPLE: folded, or refused as PERMANENT; twice is as once.
#include <stdlib.h>

#include "common/recipients/digest_people.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    DigestPeople *people = digest_people_new();
    BusMessage message = {.payload = str_of(data, size), .stored_at_us = 1};
    Error err = {0};
    bool folded = digest_people_fold(people, &message, arena, &err);
    size_t once = digest_people_count(people);
    bool again = digest_people_fold(people, &message, arena, &err);
    if (folded != again || once > 2 || digest_people_count(people) != once ||
        (!folded && (err.kind != ERROR_PERMANENT || once != 0))) {
        abort();
    }
    digest_people_free(people);
    arena_free(arena);
    return 0;
}
