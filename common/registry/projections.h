// SPDX-License-Identifier: Apache-2.0
// Every projection: what is made of streams, and how it is made again; and what is not made again,
// with the reason. Pure.
#pragma once

#include "common/base/str.h"

typedef enum ProjectionRemake {
    REMAKE_SWAP,    // stentor rebuild: next to the live tables, then swapped in
    REMAKE_REPLACE, // stentor rebuild: in a copy, then what differs is replaced
    REMAKE_REWIND,  // stentor rebuild: its position is taken back, and its service folds it again
    REMAKE_SERVICE, // by its own service, as `how` says: it decides or publishes
} ProjectionRemake;

enum { PROJECTION_LIST_MAX = 8 };

typedef struct ProjectionRow {
    const char *name;                             // "people": as stentor rebuild calls it
    const char *schema;                           // "people"
    const char *position;                         // in <schema>.positions; "": a worker's acks are
    const char *tables[PROJECTION_LIST_MAX + 1];  // without the schema; NULL at the end
    const char *streams[PROJECTION_LIST_MAX + 1]; // NULL at the end
    ProjectionRemake remake;
    const char *how; // REMAKE_SERVICE: a command, or what to do
} ProjectionRow;

const ProjectionRow *projection_rows(size_t *ret_count);
const ProjectionRow *projection_row(Str name); // NULL: unknown

// What an operator may take for a projection, and tables made of a stream that are none.
typedef struct UnmadeRow {
    const char *name;                            // "digests"
    const char *tables[PROJECTION_LIST_MAX + 1]; // with the schema; NULL at the end
    const char *why;
} UnmadeRow;

const UnmadeRow *unmade_rows(size_t *ret_count);
const UnmadeRow *unmade_row(Str name); // NULL: unknown
