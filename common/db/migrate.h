// SPDX-License-Identifier: Apache-2.0
// Migrations: migrations/<schema>/NNNN_slug.sql, forward only, each in its own transaction, all
// under one advisory lock so that many may try at once. Blocking: for the command line, not for a
// loop.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

// Stentor's schemas in the order in which they must be made (later ones use the functions and roles
// of earlier ones), NULL at the end.
extern const char *const migrate_schemas[];

typedef struct MigrateReport {
    int applied;
    int present;
} MigrateReport;

// `folder` holds one folder per schema; `schemas` (NULL-terminated) gives their order. The checksum
// of an applied file that was changed since is ERROR_CONFIG with its name; so is a failing
// statement, with file, line and Postgres's words. on_applied (may be NULL) is called after each
// applied file.
bool db_migrate(
    const char *url, const char *folder, const char *const *schemas, MigrateReport *ret,
    void (*on_applied)(void *ctx, const char *schema, const char *file), void *ctx, Error *err);
