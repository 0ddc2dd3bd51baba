// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/key_order.h"

void key_order_init(KeyOrder *order, Arena *arena, const Str *keys, size_t count)
{
    size_t cap = 4;
    while (cap < 2 * count) {
        cap *= 2;
    }
    // The last row of a key + 1; open addressing, never more than half full.
    size_t *tails = arena_array(arena, cap, sizeof *tails);
    order->next = arena_array(arena, count, sizeof(*order->next));
    order->first = arena_array(arena, count, sizeof(*order->first));
    for (size_t i = 0; i < count; i++) {
        order->next[i] = KEY_ORDER_NONE;
        order->first[i] = true;
        if (keys[i].ptr == NULL) {
            continue;
        }
        size_t at = (size_t)str_hash(keys[i]) & (cap - 1);
        while (tails[at] != 0 && !str_eq(keys[tails[at] - 1], keys[i])) {
            at = (at + 1) & (cap - 1);
        }
        if (tails[at] != 0) {
            order->next[tails[at] - 1] = i;
            order->first[i] = false;
        }
        tails[at] = i + 1;
    }
}
