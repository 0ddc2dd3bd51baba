// SPDX-License-Identifier: Apache-2.0
// Rows of a person that left Postgres, read from the tenant's archived objects.
#pragma once

#include "common/access/access_export.h"

// A table of archive.kinds, and how rows of a person are found in it.
typedef struct AccessArchived {
    const char *kind, *ordinal;
    const char *recipient; // column with the recipient's id; NULL: it has none
    const char *hash;      // column with the hash of the address
    const char *time;      // column with the time at which the address counts
    const char *of;        // instead: the section whose first column this table's first one names
    int key_columns;       // so many first columns tell rows apart, and are their order
} AccessArchived;

typedef struct AccessArchive {
    const AccessArchived *table;
    const PGresult *columns; // their names, as the section's query gives them
    json_t *sources;         // takes a row for each object
} AccessArchive;

// "sealed_address" is given as "address".
const char *access_plain_name(const char *column);
// A packed Sealed, opened with the person's keys; null, and counted, without one.
json_t *access_opened(AccessExport *export, Str packed, Str id, const char *field, Arena *arena);
// Adds to `list` what objects have of the person; of a row that both have, the later state, with
// the other's values where it has none. Without storage each object is a gap; so is one that is
// not as it was written. Ends with the rows in the order of their key.
bool access_add_archived(
    AccessExport *export, const AccessArchive *archive, json_t *list, Arena *arena, Error *err);
