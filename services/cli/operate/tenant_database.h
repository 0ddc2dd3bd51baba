// SPDX-License-Identifier: Apache-2.0
// Postgres as the tenant of the settings sees it: row-level security shows that tenant's rows.
#pragma once

#include <libpq-fe.h>

#include "services/cli/cli.h"

// NULL: ERROR_USAGE names the setting that is missing; TRANSIENT, Postgres does not answer.
PGconn *tenant_database(const Cli *cli, Error *err);
