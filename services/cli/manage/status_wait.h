// SPDX-License-Identifier: Apache-2.0
// What a notification that is not sent yet waits for outside: its channel's vendor, when dispatchers
// have stored in CONFIG that it cannot be reached (common/config/channel_health.h).
#pragma once

#include <jansson.h>

#include "services/cli/cli.h"

// {"for": "smtp", "since": "...", "reason": "..."}; NULL: nothing is known, or it waits for its
// time, or is over. row: as `stentor status --json` prints it. A CONFIG that cannot be read is a
// note on standard error, for the status itself is known.
json_t *status_wait(const Cli *cli, const json_t *row);
