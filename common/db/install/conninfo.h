// SPDX-License-Identifier: Apache-2.0
// A Postgres connection string with parts of it replaced: "postgresql://..." or "host=...
// dbname=..." in, "host='...' dbname='...'" out. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

typedef struct ConninfoPart {
    const char *keyword; // "user"; NULL ends the list
    const char *value;   // NULL: as it is
} ConninfoPart;

// NULL and ERROR_CONFIG for what libpq cannot parse; its words are left out, since they may quote a
// password.
char *conninfo_with(Arena *arena, const char *url, const ConninfoPart *parts, Error *err);
// The value that `url` itself has for a keyword; NULL: none, or it cannot be parsed.
const char *conninfo_get(Arena *arena, const char *url, const char *keyword);
