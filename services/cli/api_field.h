// SPDX-License-Identifier: Apache-2.0
// The API names a field of its JSON; the caller of a command knows options. Pure.
#pragma once

#include "services/cli/cli.h"

// "--at" for "scheduled_for", "--var plan" for "variables.plan", "--definition
// request.url" for "definition.request.url", "--time-zone" for "time_zone":
// the option of the command that fills the field, in the arena. NULL: it has none.
const char *api_field_option(const Command *command, Str field, Arena *arena);
