// SPDX-License-Identifier: Apache-2.0
// A small file as a whole, for what is read once: a key file, a template's source.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

// "-": standard input. ERROR_CONFIG when it cannot be read, ERROR_PERMANENT beyond `max` bytes.
bool file_read(const char *path, size_t max, Arena *arena, Str *ret, Error *err);
