// SPDX-License-Identifier: Apache-2.0
#include "services/cli/user_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/service/options.h"
#include "common/service/options_file.h"

const char *user_config_path(Arena *arena)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (config != NULL && config[0] == '/') { // the specification passes over a relative one
        return arena_printf(arena, "%s/stentor/config", config);
    }
    return home != NULL && home[0] == '/' ? arena_printf(arena, "%s/.config/stentor/config", home)
                                          : NULL;
}

static bool fail(const char *what, const char *path, Error *err)
{
    return error_set(err, ERROR_CONFIG, "cannot %s '%s': %s", what, path, strerror(errno));
}

bool user_config_find(Arena *arena, const char **ret, Error *err)
{
    struct stat found;
    const char *path = user_config_path(arena);
    *ret = NULL;
    if (path == NULL || (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR))) {
        return true;
    }
    if (stat(path, &found) != 0) {
        return fail("read", path, err);
    }
    if (found.st_uid != geteuid()) {
        return error_set(
            err, ERROR_CONFIG,
            "'%s' belongs to another user (HINT: HOME is that user's; sudo -H takes yours)", path);
    }
    if ((found.st_mode & 077) != 0) {
        return error_set(
            err, ERROR_CONFIG,
            "others may read your settings, which hold a key (HINT: chmod 600 '%s')", path);
    }
    *ret = path;
    return true;
}

bool user_config_value(
    const char *path, const char *name, Arena *arena, const char **ret, Error *err)
{
    OptionsFile file;
    Str text = STR_EMPTY, line_name, value;
    *ret = NULL;
    if (!file_read(path, OPTION_FILE_MAX, arena, &text, err)) {
        return false;
    }
    Error broken = {0};
    options_file_init(&file, text);
    while (options_file_next(&file, &line_name, &value, &broken)) {
        *ret = str_eq(line_name, str_from(name)) ? arena_cstr(arena, value) : *ret;
    }
    options_file_done(&file);
    return broken.kind == ERROR_NONE || error_set(err, broken.kind, "%s: %s", path, broken.text);
}

// ---- changing it ----

// In a folder of another user root would leave files that this user cannot read, and would follow
// links that this user put there: sudo with the HOME of its caller.
static bool check_owners(const char *path, Arena *arena, Error *err)
{
    struct stat found;
    char *folder = arena_printf(arena, "%s", path);
    for (char *slash = strrchr(folder, '/'); geteuid() == 0 && slash > folder;
         slash = strrchr(folder, '/')) {
        *slash = '\0';
        if (stat(folder, &found) == 0 && found.st_uid != 0) {
            return error_set(
                err, ERROR_CONFIG,
                "'%s' belongs to another user: root writes no settings there (HINT: without sudo "
                "for that user's own, sudo -H for root's)",
                folder);
        }
    }
    return true;
}

static bool is_setting(Str line, const char *name)
{
    Str rest = str_trim(line);
    Str before;
    return str_split(&rest, '=', &before) && rest.ptr != NULL &&
           str_eq(str_trim(before), str_from(name));
}

static bool is_replaced(Str line, const UserSetting *settings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_setting(line, settings[i].name)) {
            return true;
        }
    }
    return false;
}

// The file's new text. *ret_left: a setting is in it.
static void change_text(
    Str text, const UserSetting *settings, size_t count, Buf *out, bool *ret_left)
{
    Str line;
    *ret_left = false;
    while (text.len > 0 && str_split(&text, '\n', &line)) {
        if (!is_replaced(line, settings, count)) {
            Str plain = str_trim(line);
            *ret_left = *ret_left || (plain.len > 0 && plain.ptr[0] != '#');
            buf_str(out, line);
            buf_char(out, '\n');
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (settings[i].value != NULL) {
            options_file_write(out, str_from(settings[i].name), settings[i].value);
            *ret_left = true;
        }
    }
}

// Each folder of the path that is not there, for the user alone.
static bool make_folders(char *path, Error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST || fail("make", path, err);
        *slash = '/';
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool user_config_change(
    const char *path, const UserSetting *settings, size_t count, Arena *arena, Error *err)
{
    Str text = STR_EMPTY;
    if (!check_owners(path, arena, err) ||
        (access(path, F_OK) == 0 && !file_read(path, OPTION_FILE_MAX, arena, &text, err))) {
        return false;
    }
    Buf changed;
    bool left = false;
    buf_init(&changed, (size_t)2 * OPTION_FILE_MAX);
    change_text(text, settings, count, &changed, &left);
    bool ok = true;
    FilePut done;
    if (left) {
        ok = make_folders(arena_printf(arena, "%s", path), err) &&
             file_put(
                 path, buf_view(&changed), &(FileRights){.mode = 0600, .group = (gid_t)-1}, true,
                 &done, err);
    } else {
        ok = unlink(path) == 0 || errno == ENOENT || fail("remove", path, err);
    }
    buf_done(&changed);
    return ok;
}
