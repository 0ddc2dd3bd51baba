// SPDX-License-Identifier: Apache-2.0
// Heads: the last migration of each schema, as this program was built for it and as the database
// has it. Pure; the numbers are those of migrations/ at the build.
#pragma once

#include <stddef.h>

typedef struct Head {
    const char *schema;
    int number; // 0: none
} Head;

typedef enum HeadsVerdict { HEADS_FIT, HEADS_OLDER, HEADS_NEWER } HeadsVerdict;

const Head *heads_built(size_t *ret_count);
// Is the database older than `built` somewhere (that comes first), or newer? `text`: what does not
// fit, and what to do; empty when all fits.
HeadsVerdict heads_compare(
    const Head *built, size_t built_count, const Head *there, size_t there_count, char *text,
    size_t size);
