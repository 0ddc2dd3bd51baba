// SPDX-License-Identifier: Apache-2.0
// What `migrate` does, for `init servers` too.
#pragma once

#include "common/bus/topology/accounts.h"
#include "services/cli/cli.h"

// Schemas, streams and consumers, the registered keys, by the settings and flags of the command;
// prints its steps. `accounts`: whose subscribers get their consumers.
bool migrate_all(Cli *cli, const Accounts *accounts, Error *err);
