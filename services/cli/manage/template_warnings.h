// SPDX-License-Identifier: Apache-2.0
// What the API warned of in its answer to a command that changed a template, on stderr.
#pragma once

#include <jansson.h>

#include "services/cli/cli.h"

void template_warnings(Cli *cli, const json_t *answer);
