// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/tenant_database.h"

#include "common/archive/database.h"

PGconn *tenant_database(const Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err) ||
        !cli_need(cli->settings.tenant, "STENTOR_TENANT", err)) {
        return NULL;
    }
    PGconn *pg = archive_connect(cli->settings.database_url, "stentor-cli", err);
    const char *params[] = {cli->settings.tenant};
    static const char set[] = "SELECT set_config('app.tenant_id', $1, false)";
    if (pg != NULL && !archive_do(pg, "the tenant", set, params, 1, err)) {
        PQfinish(pg);
        return NULL;
    }
    return pg;
}
