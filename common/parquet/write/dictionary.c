// SPDX-License-Identifier: Apache-2.0
#include "common/parquet/write/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/parquet/checksum.h"

enum { SLOTS = 2 * DICTIONARY_ENTRIES_MAX };

struct Dictionary {
    Buf bytes; // values back to back
    uint32_t count;
    uint32_t ends[DICTIONARY_ENTRIES_MAX + 1]; // ends[0] is 0: where value i begins
    uint64_t hashes[DICTIONARY_ENTRIES_MAX];
    uint32_t slots[SLOTS]; // place + 1; 0: free
    uint32_t last;         // the place given before: values often repeat in a row
};

Dictionary *dictionary_new(void)
{
    Dictionary *d = xcalloc(1, sizeof *d);
    buf_init(&d->bytes, DICTIONARY_BYTES_MAX);
    return d;
}

void dictionary_free(Dictionary *d)
{
    if (d != NULL) {
        buf_done(&d->bytes);
        free(d);
    }
}

void dictionary_clear(Dictionary *d)
{
    buf_clear(&d->bytes);
    d->count = d->last = 0;
    memset(d->slots, 0, sizeof d->slots);
}

uint32_t dictionary_count(const Dictionary *d)
{
    return d->count;
}

Str dictionary_value(const Dictionary *d, uint32_t place)
{
    uint32_t from = d->ends[place];
    return str_of(d->bytes.ptr != NULL ? d->bytes.ptr + from : "", d->ends[place + 1] - from);
}

uint64_t dictionary_hash(const Dictionary *d, uint32_t place)
{
    return d->hashes[place];
}

static bool add(Dictionary *d, Str value, uint64_t hash, uint32_t slot)
{
    if (d->count == DICTIONARY_ENTRIES_MAX || !buf_str(&d->bytes, value)) {
        return false;
    }
    d->hashes[d->count] = hash;
    d->slots[slot] = ++d->count;
    d->ends[d->count] = (uint32_t)d->bytes.len;
    return true;
}

bool dictionary_place(Dictionary *d, Str value, uint32_t *ret_place)
{
    if (d->count > 0 && str_eq(dictionary_value(d, d->last), value)) {
        *ret_place = d->last;
        return true;
    }
    uint64_t hash = parquet_xxh64(value);
    uint32_t slot = (uint32_t)hash % SLOTS;
    for (; d->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        uint32_t place = d->slots[slot] - 1;
        if (d->hashes[place] == hash && str_eq(dictionary_value(d, place), value)) {
            *ret_place = d->last = place;
            return true;
        }
    }
    if (!add(d, value, hash, slot)) {
        return false;
    }
    *ret_place = d->last = d->count - 1;
    return true;
}
