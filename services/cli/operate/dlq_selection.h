// SPDX-License-Identifier: Apache-2.0
// Which dead letters a command is about, from its flags.
#pragma once

#include "common/deadletter/dlq_scan.h"
#include "services/cli/cli.h"

// From STENTOR_TENANT and the flags all-tenants, stage, since. ERROR_USAGE names the flag.
bool selection_read(Cli *cli, Selection *ret, Error *err);

// No letter of the selected stage was found: prints which stages there are, because the name may be
// mistyped.
void selection_note_none(const Cli *cli, const Selection *selection);
