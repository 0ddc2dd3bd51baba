// SPDX-License-Identifier: Apache-2.0
// Everything that is kept of a person, opened: for the person's own access (Art. 15) and to take
// along (Art. 20). A JSON document with a version, its sections lists of flat objects, so that each
// is also a table. From Postgres, archived objects, CONFIG, the streams of requests and their
// segments. It blocks.
#pragma once

#include <jansson.h>

#include "common/access/person_keys.h"
#include "common/session/session.h"
#include "common/storage/storage_wait.h"

typedef struct AccessExport {
    PGconn *pg; // sees the tenant's rows
    Session *session;
    StorageWait *storage; // NULL: segments are not read, and the document says so
    const ErasurePerson *person;
    HashKeys hash_keys; // of addresses and key subjects
    PersonKeys *keys;
    int64_t now_us;
    // the answer
    json_t *root; // the caller frees it
    json_t *gaps; // of root
    uint64_t unreadable;
    uint64_t refused; // rows and values of the section that is being made
    Error failed;     // in the middle of a walk: the export fails
} AccessExport;

bool access_export(AccessExport *export, Error *err);

// Names of the sections that are lists ("contents" is the caller's), in their order; NULL ends
// them.
extern const char *const access_tables[];
enum { ACCESS_CSV_MAX = 512 * 1024 * 1024 };
// A section as CSV (RFC 4180): a head, a line per object. A text that a spreadsheet would take for
// a formula begins with '. In `arena`. ERROR_PERMANENT, with its name: longer than max_bytes.
bool access_csv(
    const char *section, const json_t *list, size_t max_bytes, Arena *arena, Str *ret, Error *err);

// Whether what has this address's hash, and no recipient's id, is of the person at that time
// (erasure.was_of). false also when it cannot be asked: x->failed.
bool access_is_of_address(AccessExport *export, Str hash, int64_t at_us, Arena *arena);
// Takes the row; NULL, as a text that is not UTF-8 makes it: it is counted.
void access_append(AccessExport *export, json_t *list, json_t *row);
void access_set(AccessExport *export, json_t *object, const char *name, json_t *value);
// Ends a section: what was counted is a gap of its name.
void access_end_section(AccessExport *export, const char *section);
