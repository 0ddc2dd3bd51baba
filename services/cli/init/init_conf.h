// SPDX-License-Identifier: Apache-2.0
// The texts of the settings files that init writes; pure but for the arguments of the command.
#pragma once

#include "services/cli/init/init.h"

enum { SETTINGS_MAX = 64 };

// Lines NAME=value of a file, each name once: a later one takes the place of an earlier one.
typedef struct SettingLines {
    struct {
        Str name;
        const char *value;
    } at[SETTINGS_MAX];
    size_t count;
} SettingLines;

void setting_put(SettingLines *lines, Str name, const char *value);
Str setting_text(Cli *cli, const SettingLines *lines);

// Each --set [NAME:]SETTING=VALUE names a setting that some program knows, and a service that there
// is.
bool init_check_sets(Cli *cli, Error *err);

// epochs: the folder of epoch keys; NULL: none.
Str init_service_conf(Cli *cli, const InitService *service, const char *epochs);
Str init_admin_conf(Cli *cli);
Str init_cli_conf(Cli *cli, const char *epochs);
Str init_nats_conf(Cli *cli);
