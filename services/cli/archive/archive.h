// SPDX-License-Identifier: Apache-2.0
// What the commands of `stentor archive` share.
#pragma once

#include <libpq-fe.h>

#include "services/cli/cli.h"

// The catalogue's connection; NULL: the error is set.
PGconn *archive_command_open(const Cli *cli, Error *err);
// "1.5 GB", in the arena.
const char *archive_size(const Cli *cli, uint64_t bytes);
// Prints rows of an object by the own reader, at most `most`; as JSON with --json.
bool archive_print_rows(const Cli *cli, const char *key, uint64_t bytes, int64_t most, Error *err);
// A flag's span: "90d", also "0". *ret stays when the flag was not given.
int cmd_archive_delete_orphans(Cli *cli);
bool archive_span(const Cli *cli, const char *flag, int64_t *ret_us, Error *err);
