// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of a mapping's parts. Private to mapping*.c. Law: every failure names the
// member by its path from the file's root ("moments.sent.status").
#pragma once

#include "common/outbox/mapping/mapping.h"

typedef struct MappingReader {
    Mapping *mapping;
    Arena *arena;
    Error *err;
} MappingReader;

// Fills the error with "<path>: <text>"; false.
bool mapping_wrong(MappingReader *r, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
Str mapping_text(const json_t *string); // a JSON string's bytes; the empty slice for anything else
// A name that Postgres accepts: 1 to 63 bytes of UTF-8 without control characters.
bool mapping_column(MappingReader *r, const json_t *value, const char *path, Str *ret);
// Rejects members that are not in the space-separated list.
bool mapping_known(MappingReader *r, const json_t *object, const char *path, const char *members);

bool mapping_fields(MappingReader *r, const json_t *fields);
// mapping_moments.c
bool mapping_assigns(
    MappingReader *r, const json_t *object, const char *path, bool only_values, Assigns *ret);
bool mapping_moments(MappingReader *r, const json_t *moments);
bool mapping_keeps(MappingReader *r, const json_t *keep);
bool mapping_retries(MappingReader *r, const json_t *retries);
// After everything is read: some moment must make a row no longer pending.
bool mapping_check_ends(MappingReader *r);
