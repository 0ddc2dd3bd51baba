// SPDX-License-Identifier: Apache-2.0
// --attach of `send`: files are uploaded (POST /v1/attachments), and the request names their ids.
#pragma once

#include <jansson.h>

#include "services/cli/cli.h"

// Adds "attachments" to the request. false: a file cannot be read, or the API refused it.
bool send_attach(Cli *cli, json_t *request, Error *err);
