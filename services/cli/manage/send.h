// SPDX-License-Identifier: Apache-2.0
// Asking for a notification over the HTTP API: `send` and `template test-send`.
#pragma once

#include <jansson.h>

#include "services/cli/cli.h"

// Puts {"consent": {"source", "given_at"}} of --consent-source and --consent-at there, if given.
bool send_add_consent(Cli *cli, json_t *request, Error *err);
// POSTs the request, prints the answer or the error, returns the exit status. STENTOR_API_KEY must
// be set.
int send_request(Cli *cli, const json_t *request);
