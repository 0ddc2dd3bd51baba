// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/waves.h"

// Slots hold the last row of a key + 1; open addressing, never more than half full.
typedef struct Tails {
    size_t *slots;
    size_t mask;
} Tails;

static size_t *find_tail(const Tails *tails, const Str *keys, Str key)
{
    size_t at = (size_t)str_hash(key) & tails->mask;
    while (tails->slots[at] != 0 && !str_eq(keys[tails->slots[at] - 1], key)) {
        at = (at + 1) & tails->mask;
    }
    return &tails->slots[at];
}

static Tails make_tails(Arena *arena, size_t count)
{
    size_t cap = 4;
    while (cap < 2 * count) {
        cap *= 2;
    }
    return (Tails){.slots = arena_array(arena, cap, sizeof(size_t)), .mask = cap - 1};
}

void waves_init(Waves *waves, Arena *arena, const Str *keys, size_t count)
{
    Tails tails = make_tails(arena, count);
    waves->next = arena_array(arena, count, sizeof(*waves->next));
    waves->first = arena_array(arena, count, sizeof(*waves->first));
    for (size_t i = 0; i < count; i++) {
        waves->next[i] = WAVES_NONE;
        waves->first[i] = true;
        if (keys[i].ptr == NULL) {
            continue;
        }
        size_t *tail = find_tail(&tails, keys, keys[i]);
        if (*tail != 0) {
            waves->next[*tail - 1] = i;
            waves->first[i] = false;
        }
        *tail = i + 1;
    }
}
