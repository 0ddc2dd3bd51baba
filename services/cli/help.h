// SPDX-License-Identifier: Apache-2.0
// What `stentor help` prints, made from the command table.
#pragma once

#include "services/cli/cli.h"

// topic: a command, the first word of several, or NULL for all. Returns the exit status.
int help_print(const CommandTable *table, const char *topic);
// Prints on standard error which commands begin with the word. When none does, or an unknown second
// word follows: that there is no such command, and which is most like it. second NULL: there is
// none. Returns EXIT_USAGE.
int help_unknown(const CommandTable *table, const char *word, const char *second, bool json);
