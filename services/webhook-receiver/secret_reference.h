// SPDX-License-Identifier: Apache-2.0
// Where a key is: "file:/path" or "env:NAME".
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

// ERROR_PERMANENT: of no known form. ERROR_CONFIG: it cannot be read. Never says what it has read.
bool secret_reference_read(Str reference, Arena *arena, Str *ret, Error *err);
