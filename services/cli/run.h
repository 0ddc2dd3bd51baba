// SPDX-License-Identifier: Apache-2.0
// One command: its flags and the settings are read, then it runs.
#pragma once

#include "services/cli/cli.h"

// argv[0..at): the program and the flags before the command; argv[from..argc): what follows its
// name. Returns the exit status; what is wrong with flags or settings is on standard error.
int command_run(
    const CommandTable *table, const Command *command, int at, int from, int argc, char **argv);
// Does --json stand among the words? For what is wrong before they are parsed.
bool run_wants_json(int argc, char **argv);
