// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/heads.h"

#include <stdio.h>
#include <string.h>

static const Head built_heads[] = {
#include "migration_heads.h"
};

const Head *heads_built(size_t *ret_count)
{
    *ret_count = sizeof built_heads / sizeof *built_heads;
    return built_heads;
}

static int number_of(const Head *heads, size_t count, const char *schema)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(heads[i].schema, schema) == 0) {
            return heads[i].number;
        }
    }
    return 0;
}

HeadsVerdict heads_compare(
    const Head *built, size_t built_count, const Head *there, size_t there_count, char *text,
    size_t size)
{
    for (size_t i = 0; i < built_count; i++) {
        int number = number_of(there, there_count, built[i].schema);
        if (number < built[i].number) {
            snprintf(
                text, size,
                "the database is of an older release: migration %s/%04d is missing (HINT: run "
                "'stentor migrate' of this release)",
                built[i].schema, number + 1);
            return HEADS_OLDER;
        }
    }
    for (size_t i = 0; i < there_count; i++) {
        int number = number_of(built, built_count, there[i].schema);
        if (number < there[i].number) {
            snprintf(
                text, size,
                "the database is of a newer release: it has migration %s/%04d, this program knows "
                "%04d (HINT: start the newer release; STENTOR_DATABASE_NEWER=true runs this one)",
                there[i].schema, there[i].number, number);
            return HEADS_NEWER;
        }
    }
    text[0] = '\0';
    return HEADS_FIT;
}
