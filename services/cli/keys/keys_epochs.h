// SPDX-License-Identifier: Apache-2.0
// The epochs' part of keys status.
#pragma once

#include <jansson.h>
#include <libpq-fe.h>

#include "services/cli/cli.h"

PGconn *keys_database(const Cli *cli, Error *err); // NULL: it cannot be reached, or is not named

// Printed, or into `report` with --json: the epochs that there are and the last that were
// destroyed, and how the work on keys stands. Nothing without epochs.
bool keys_epochs_show(const Cli *cli, PGconn *pg, json_t *report, Error *err);
