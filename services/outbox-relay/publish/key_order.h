// SPDX-License-Identifier: Apache-2.0
// KeyOrder: the order in which the rows of a batch may be published. Rows of one ordering key
// follow each other in the batch's order, each when the one before it is stored; rows of different
// keys, and those without a key, are published together. Pure.
#pragma once

#include "common/base/arena.h"

#define KEY_ORDER_NONE SIZE_MAX

typedef struct KeyOrder {
    size_t *next; // of each row: the next one of the same key, or KEY_ORDER_NONE
    bool *first;  // of each row: it is the first of its key
} KeyOrder;

// keys[i] is the ordering key of row i; ptr NULL: none (empty text is a key like any other). The
// arrays live in `arena`.
void key_order_init(KeyOrder *order, Arena *arena, const Str *keys, size_t count);
