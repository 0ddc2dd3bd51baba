// SPDX-License-Identifier: Apache-2.0
// A notification that history does not have yet, as the accept log has it: the archiver holds a
// request back for its end, or is away.
#pragma once

#include <jansson.h>
#include <libpq-fe.h>

#include "services/cli/cli.h"

// As `stentor status --json` prints it. NULL: it was not accepted, or by an installation whose
// tables were not migrated yet; an error is set when the row cannot be read.
json_t *status_accepted(const Cli *cli, PGconn *conn, const char *id, Error *err);
