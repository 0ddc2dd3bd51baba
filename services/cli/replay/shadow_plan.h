// SPDX-License-Identifier: Apache-2.0
// What a shadow replay is to compare, from its flags.
#pragma once

#include "common/replay/shadow/shadow.h"
#include "services/cli/cli.h"

// Reads the files of the new content too. ERROR_USAGE names the flag and what would be right.
// Strings live as long as the Cli.
bool shadow_plan_read(Cli *cli, int64_t now_us, ShadowPlan *ret, Error *err);
