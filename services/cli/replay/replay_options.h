// SPDX-License-Identifier: Apache-2.0
// What a replay is to do, from its flags. Pure: the time is an argument.
#pragma once

#include "common/replay/replay_plan.h"
#include "services/cli/cli.h"

// Reads and checks the flags. ERROR_USAGE names what is wrong and what would be right. Strings
// live as long as the Cli. Needs --stream and one of the three beginnings; a target unless dry.
bool replay_plan_read(Cli *cli, int64_t now_us, ReplayPlan *ret, Error *err);
