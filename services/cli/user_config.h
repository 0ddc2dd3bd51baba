// SPDX-License-Identifier: Apache-2.0
// The user's own settings: $XDG_CONFIG_HOME/stentor/config, ~/.config/stentor/config without that
// variable. Lines NAME=value as in every options file. It holds a key, so one that others may read,
// or that belongs to another user, is refused and not warned of: a warning in the log of a
// script goes unread, and the key is already out.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

#define USER_CONFIG "~/.config/stentor/config"

// Where it is, whether or not it exists; NULL: neither variable is set.
const char *user_config_path(Arena *arena);
// Its path when it exists and only its owner reads it; NULL: there is none. False: it is refused.
bool user_config_find(Arena *arena, const char **ret, Error *err);

// A setting of that file, or of another one of its grammar, in the arena; NULL: it is not in it.
bool user_config_value(
    const char *path, const char *name, Arena *arena, const char **ret, Error *err);

typedef struct UserSetting {
    const char *name;
    const char *value; // NULL: is taken out
} UserSetting;

// Writes the settings over those of the same names and keeps all other lines; whole or not at all,
// readable by the user alone. A file without a setting left is removed. ERROR_CONFIG when root
// would write into a folder of another user.
bool user_config_change(
    const char *path, const UserSetting *settings, size_t count, Arena *arena, Error *err);
