// SPDX-License-Identifier: Apache-2.0
// The table of commands, of which help, completion, the man page and COMMANDS.md are made.
#pragma once

#include "services/cli/cli.h"

extern const Command commands[];
extern const int command_count;
