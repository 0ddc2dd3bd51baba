// SPDX-License-Identifier: Apache-2.0
#include "common/storage/storage_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/arena.h"

// One folder: its names, sorted. A folder's own name ends with '/', which is where its keys stand
// among those beside it: "a-b" before "a/c".
typedef struct Level {
    struct Level *above;
    Arena *arena; // of the names
    const char **names;
    size_t count, room, next;
    size_t path_len; // of this folder's keys: "log/STATUS/"
} Level;

struct StorageWalk {
    char root[STORAGE_FOLDER_MAX + 1];
    char prefix[STORAGE_KEY_MAX + 1];
    char key[STORAGE_KEY_MAX + 1];
    bool begun;
    Level *level;
};

static void pop(StorageWalk *walk)
{
    Level *level = walk->level;
    walk->level = level->above;
    arena_free(level->arena);
    free(level->names);
    free(level);
}

StorageWalk *storage_walk_new(const StorageFolder *folder, Str prefix)
{
    StorageWalk *walk = xcalloc(1, sizeof *walk);
    (void)str_to_c(str_from(folder->root), walk->root, sizeof walk->root);
    (void)str_to_c(prefix, walk->prefix, sizeof walk->prefix);
    return walk;
}

void storage_walk_free(StorageWalk *walk)
{
    if (walk != NULL) {
        while (walk->level != NULL) {
            pop(walk);
        }
        free(walk);
    }
}

static void name_path(const StorageWalk *walk, char out[STORAGE_PATH_SIZE])
{
    (void)snprintf(out, STORAGE_PATH_SIZE, "%s/%s", walk->root, walk->key);
}

// Puts `name` behind the level's keys; false: such a key cannot be, or is not under the prefix.
static bool enter_name(StorageWalk *walk, const Level *level, const char *name)
{
    size_t room = sizeof walk->key - level->path_len;
    if (!str_to_c(str_from(name), walk->key + level->path_len, room)) {
        return false;
    }
    Str key = str_from(walk->key);
    Str prefix = str_from(walk->prefix);
    bool is_folder = str_ends(key, STR("/"));
    return str_starts(key, prefix) || (is_folder && str_starts(prefix, key));
}

// Not a key's part: ".tmp", "lost+found".
static bool is_part(const char *name)
{
    bool is = name[0] != '.';
    for (const char *c = name; is && *c != '\0'; c++) {
        is = storage_key_byte(*c);
    }
    return is;
}

static void add_name(Level *level, const char *name, bool is_folder)
{
    if (level->count == level->room) {
        level->room = level->room == 0 ? 64 : level->room * 2;
        level->names = xrealloc(level->names, level->room * sizeof *level->names);
    }
    level->names[level->count++] = arena_printf(level->arena, "%s%s", name, is_folder ? "/" : "");
}

static void add_entry(StorageWalk *walk, Level *level, const char *name)
{
    struct stat file;
    char path[STORAGE_PATH_SIZE];
    if (!is_part(name) ||
        !str_to_c(
            str_from(name), walk->key + level->path_len, sizeof walk->key - level->path_len)) {
        return;
    }
    name_path(walk, path);
    if (lstat(path, &file) == 0 && (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode))) {
        add_name(level, name, S_ISDIR(file.st_mode));
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The folder that walk->key names, which ends with '/' or is empty.
static bool push(StorageWalk *walk, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    name_path(walk, path);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return errno == ENOENT ||
               storage_folder_error(str_from(walk->key), "cannot be listed", err);
    }
    Level *level = xcalloc(1, sizeof *level);
    level->above = walk->level;
    level->arena = arena_new(0);
    level->path_len = strlen(walk->key);
    walk->level = level;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL; errno = 0) {
        add_entry(walk, level, entry->d_name);
    }
    int why = errno;
    (void)closedir(dir);
    walk->key[level->path_len] = '\0';
    if (level->count > 0) {
        qsort(level->names, level->count, sizeof *level->names, compare);
    }
    errno = why;
    return why == 0 || storage_folder_error(str_from(walk->key), "cannot be listed", err);
}

static bool take_file(StorageWalk *walk, Str *ret_key, StorageInfo *ret)
{
    char path[STORAGE_PATH_SIZE];
    struct stat file;
    name_path(walk, path);
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        return false;
    }
    storage_folder_info(&file, ret);
    *ret_key = str_from(walk->key);
    return true;
}

bool storage_walk_next(StorageWalk *walk, Str *ret_key, StorageInfo *ret, Error *err)
{
    if (!walk->begun) {
        walk->begun = true;
        if (!push(walk, err)) {
            return false;
        }
    }
    while (walk->level != NULL) {
        Level *level = walk->level;
        if (level->next == level->count) {
            pop(walk);
            continue;
        }
        const char *name = level->names[level->next++];
        if (!enter_name(walk, level, name)) {
            continue;
        }
        if (str_ends(str_from(name), STR("/"))) {
            if (!push(walk, err)) {
                return false;
            }
        } else if (take_file(walk, ret_key, ret)) {
            return true;
        }
    }
    return false;
}
