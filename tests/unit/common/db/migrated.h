// SPDX-License-Identifier: Apache-2.0
// Stentor's schemas in a test's database, as an installation gets them: the roles by a superuser's
// bootstrap, all else by stentor_owner. Included behind cmocka.h.
#pragma once

#include <stdlib.h>

#include "common/db/migrate.h"

// NULL-terminated names, in their order.
static inline void migrate_these(const char *const *schemas)
{
    Error err = {0};
    MigrateReport report;
    MigrateJob job = {
        .url = getenv("STENTOR_TEST_DATABASE_URL"),
        .folder = STENTOR_SOURCE_DIR "/migrations",
        .schemas = schemas,
        .role = MIGRATE_OWNER};
    if (job.url == NULL) {
        fail_msg("run it through tests/harness/with-postgres");
    }
    if (!db_bootstrap(job.url, job.folder, &err) || !db_migrate(&job, &report, &err)) {
        fail_msg("%s", err.text);
    }
}

// A group's set-up: all of them.
static inline int migrate_all(void **state)
{
    (void)state;
    migrate_these(migrate_schemas);
    return 0;
}
