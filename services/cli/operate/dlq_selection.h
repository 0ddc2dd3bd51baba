// SPDX-License-Identifier: Apache-2.0
// Which dead letters a command is about, as the command line says it.
#pragma once

#include "common/deadletter/dlq_scan.h"
#include "services/cli/cli.h"

// From STENTOR_TENANT and the flags all-tenants, stage, since. ERROR_CONFIG names the flag.
bool selection_read(Cli *cli, Selection *ret, Error *err);

// A letter of the selected stage was not found: says which stages there are, for a name may be
// mistyped.
void selection_tell_none(const Selection *selection);

// "90s", "30m", "2h", "7d" before now, or a time in RFC 3339. ERROR_CONFIG when it is neither.
bool selection_since(const char *text, int64_t now_us, int64_t *ret_us, Error *err);
