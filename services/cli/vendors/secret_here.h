// SPDX-License-Identifier: Apache-2.0
// What a reference of CONFIG leads to, read where the command runs: by the dispatcher's reader, and
// below the folders of STENTOR_CREDENTIAL_DIRS as there.
#pragma once

#include "services/cli/cli.h"

// *ret is in the command's arena.
bool secret_here(const Cli *cli, Str reference, Str *ret, Error *err);
