// SPDX-License-Identifier: Apache-2.0
// The different values of a chunk, each with its place. Bounded: a column whose values rarely
// repeat is better off without.
#pragma once

#include "common/base/buf.h"

enum { DICTIONARY_ENTRIES_MAX = 32768, DICTIONARY_BYTES_MAX = 1024 * 1024 };

typedef struct Dictionary Dictionary;

Dictionary *dictionary_new(void);
void dictionary_free(Dictionary *dictionary); // NULL-safe
void dictionary_clear(Dictionary *dictionary);
// The value's place, a new one if needed. false: it is full.
bool dictionary_place(Dictionary *dictionary, Str value, uint32_t *ret_place);
uint32_t dictionary_count(const Dictionary *dictionary);
Str dictionary_value(const Dictionary *dictionary, uint32_t place);
uint64_t dictionary_hash(const Dictionary *dictionary, uint32_t place); // XXH64 of the value
