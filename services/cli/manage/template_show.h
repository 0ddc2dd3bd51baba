// SPDX-License-Identifier: Apache-2.0
// What the commands of templates share.
#pragma once

#include <jansson.h>

#include "services/cli/cli.h"

// "/v1/templates/KEY...", with --platform and --channel as its query; version NULL: not said.
const char *template_path(Cli *cli, const char *version);
