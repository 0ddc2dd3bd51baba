// SPDX-License-Identifier: Apache-2.0
// What doctor finds about the tenants in CONFIG: API keys that may do everything because they are
// older than scopes or whose tenant has no settings, keys that end soon, senders that nothing has
// verified.
#pragma once

#include "common/session/session.h"
#include "services/cli/cli.h"

typedef struct ConfigRemark {
    bool warns;
    const char *text; // in the command's arena; with the remedy
} ConfigRemark;

bool doctor_config_read(
    Session *session, Cli *cli, ConfigRemark *ret_keys, ConfigRemark *ret_senders, Error *err);
