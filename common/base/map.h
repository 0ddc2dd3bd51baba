// SPDX-License-Identifier: Apache-2.0
// Map: a table from byte strings to pointers. Keys are copied; values belong to the caller.
#pragma once

#include "common/base/str.h"

typedef struct Map Map;
typedef void (*MapFreeValue)(void *value);

Map *map_new(MapFreeValue free_value);  // NULL: values are not freed
void map_free(Map *map);                // and its values; NULL-safe
void *map_get(const Map *map, Str key); // NULL: not there
void map_put(
    Map *map, Str key, void *value); // value is not NULL; an earlier one of the key is freed
bool map_remove(Map *map, Str key);  // frees the value; false: was not there
size_t map_count(const Map *map);
// Walks in no order: for (size_t i = 0; map_next(map, &i, &key, &value);). Do not change the map
// meanwhile.
bool map_next(const Map *map, size_t *cursor, Str *ret_key, void **ret_value);
