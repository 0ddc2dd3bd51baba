// SPDX-License-Identifier: Apache-2.0
// What `migrate` does, for `init servers` too.
#pragma once

#include "common/bus/topology/accounts.h"
#include "services/cli/cli.h"

// Compares the database with what the migrations make, and prints each object that differs; the
// exit status of the command.
int migrate_check(Cli *cli);
// Schemas, streams and consumers, the registered keys, by the settings and flags of the command;
// prints its steps. `accounts`: whose subscribers get their consumers.
bool migrate_all(Cli *cli, const Accounts *accounts, Error *err);
