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

// Owns Stentor's schemas and is no superuser: db_bootstrap makes it.
#define MIGRATE_OWNER "stentor_owner"

typedef struct MigrateJob {
    const char *url;
    const char *folder;         // holds one folder per schema
    const char *const *schemas; // in this order, NULL at the end
    const char *role;        // becomes it first, and so who owns what is made; NULL: who connects
    bool superuser_may;      // else a superuser is refused: it would own what is made
    const char *rights_hint; // added where rights are missing, or too many; NULL: none
    void (*on_applied)(void *ctx, const char *schema, const char *file); // NULL: not called
    void *ctx;
} MigrateJob;

// ERROR_CONFIG: an applied file that was changed or replaced since, with its name and what to do; a
// failing statement, with file, line and Postgres's message.
bool db_migrate(const MigrateJob *job, MigrateReport *ret, Error *err);

// What a superuser does once, before db_migrate: `folder`/bootstrap.sql (roles and who may enter)
// and hand_over.sql (ownership of what a superuser made there), in one transaction.
bool db_bootstrap(const char *url, const char *folder, Error *err);
