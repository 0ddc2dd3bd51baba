// SPDX-License-Identifier: Apache-2.0
// A long webhook of Meta's as several short ones: it sends up to 4 MiB at once, and a message of
// NATS holds less than 1 MiB. The statuses and messages stay as they came, byte for byte; of what
// is around them only what their reader needs. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

enum { META_PARTS_MAX = 64 };

// Parts of at most part_max bytes, in the arena. ERROR_PERMANENT when the body is no webhook of
// Meta's, when one item is longer than that, or it would be more than META_PARTS_MAX parts.
bool meta_split(
    Str body, size_t part_max, Arena *arena, Str **ret_parts, size_t *ret_count, Error *err);
