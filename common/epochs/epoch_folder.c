// SPDX-License-Identifier: Apache-2.0
#include "common/epochs/epoch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/file.h"
#include "common/base/id.h"

enum { FOLDER_MAX = 3800, FILE_MODE = 0640 };

static const char SUFFIX[] = ".epoch";
static const char DESTROYED[] = ".destroyed"; // on its way: no reader looks at it any more
static const char CURRENT[] = "current";

// A folder that changed so shortly before it was read may have changed again in the same tick.
enum { TICK_US = 2 * 1000 * 1000 };

struct EpochFolder {
    MasterKey *master;
    struct timespec read_at; // the folder's time of change when it was read; 0: read it again
    ino_t inode;
    char path[FOLDER_MAX + 1];
};

typedef struct Files {
    Str texts[EPOCH_KEYS_MAX];
    size_t count;
    Str current;
} Files;

static bool fail(const EpochFolder *folder, const char *verb, Error *err)
{
    // EACCES and the like are the installer's; a full disk may end.
    ErrorKind kind = errno == ENOSPC || errno == EIO || errno == EDQUOT || errno == ESTALE
                         ? ERROR_TRANSIENT
                         : ERROR_CONFIG;
    return error_set(
        err, kind, "cannot %s '%s': %s (HINT: STENTOR_EPOCH_KEYS_DIR)", verb, folder->path,
        strerror(errno));
}

static const char *path_of(const EpochFolder *folder, Arena *arena, const char *name)
{
    return arena_printf(arena, "%s/%s", folder->path, name);
}

static const char *path_of_key(
    const EpochFolder *folder, Arena *arena, const uint8_t id[KEY_ID_LEN], const char *suffix)
{
    char text[KEY_ID_SIZE];
    key_id_print(id, text);
    return arena_printf(arena, "%s/%s%s", folder->path, text, suffix);
}

// ---- reading ----

static bool is_key_file(const char *name)
{
    Str text = str_from(name);
    return text.len == KEY_ID_SIZE - 1 + sizeof SUFFIX - 1 && str_ends(text, str_from(SUFFIX));
}

static bool add_file(
    const EpochFolder *folder, const char *name, Arena *arena, Files *files, Error *err)
{
    if (files->count == EPOCH_KEYS_MAX) {
        return error_set(
            err, ERROR_CONFIG, "'%s' holds more than %d epoch keys", folder->path,
            (int)EPOCH_KEYS_MAX);
    }
    return file_read(
        path_of(folder, arena, name), EPOCH_FILE_SIZE, arena, &files->texts[files->count++], err);
}

static bool read_current(const EpochFolder *folder, Arena *arena, Files *files, Error *err)
{
    const char *path = path_of(folder, arena, CURRENT);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        files->current = STR_EMPTY;
        return true;
    }
    bool ok = file_read(path, KEY_ID_SIZE + 1, arena, &files->current, err);
    files->current = ok ? str_trim(files->current) : STR_EMPTY;
    return ok;
}

static bool read_files(const EpochFolder *folder, Arena *arena, Files *files, Error *err)
{
    *files = (Files){.count = 0};
    DIR *dir = opendir(folder->path);
    if (dir == NULL) {
        return fail(folder, "read", err);
    }
    bool ok = true;
    // `current` first: a key that is made meanwhile is missing then, never the one that it names.
    ok = read_current(folder, arena, files, err);
    for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
        ok = !is_key_file(entry->d_name) || add_file(folder, entry->d_name, arena, files, err);
    }
    closedir(dir);
    return ok;
}

static bool load(EpochFolder *folder, Error *err)
{
    struct stat now;
    Files files;
    if (stat(folder->path, &now) != 0) {
        return fail(folder, "read", err);
    }
    Arena *arena = arena_new(0);
    bool ok = read_files(folder, arena, &files, err) &&
              (master_epochs_set(folder->master, files.texts, files.count, files.current, err) ||
               error_wrap(err, "'%.120s'", folder->path));
    arena_free(arena);
    if (ok) {
        int64_t changed_us = (int64_t)now.st_mtim.tv_sec * 1000000 + now.st_mtim.tv_nsec / 1000;
        bool settled = clock_now_us() - changed_us > TICK_US;
        folder->read_at = settled ? now.st_mtim : (struct timespec){0};
        folder->inode = now.st_ino;
    }
    return ok;
}

static bool has_changed(const EpochFolder *folder)
{
    struct stat now;
    return stat(folder->path, &now) != 0 || now.st_ino != folder->inode ||
           now.st_mtim.tv_sec != folder->read_at.tv_sec ||
           now.st_mtim.tv_nsec != folder->read_at.tv_nsec;
}

static bool on_master_refresh(void *ctx, MasterKey *master, Error *err)
{
    EpochFolder *folder = ctx;
    (void)master;
    return !has_changed(folder) || load(folder, err);
}

EpochFolder *epoch_folder_open(const char *path, MasterKey *master, Error *err)
{
    EpochFolder *folder = xcalloc(1, sizeof *folder);
    folder->master = master;
    if (strlen(path) > FOLDER_MAX) {
        error_set(err, ERROR_CONFIG, "STENTOR_EPOCH_KEYS_DIR is longer than %d", (int)FOLDER_MAX);
        free(folder);
        return NULL;
    }
    memcpy(folder->path, path, strlen(path) + 1);
    if (!load(folder, err)) {
        free(folder);
        return NULL;
    }
    master_epochs_source(master, on_master_refresh, folder);
    return folder;
}

void epoch_folder_close(EpochFolder *folder)
{
    if (folder != NULL) {
        master_epochs_source(folder->master, NULL, NULL);
        free(folder);
    }
}

// ---- writing ----

static bool put(const char *path, const char *text, Error *err)
{
    static const FileRights RIGHTS = {.mode = FILE_MODE, .group = (gid_t)-1};
    FilePut done;
    if (file_put(path, str_from(text), &RIGHTS, true, &done, err)) {
        return true;
    }
    if (err != NULL && err->kind != ERROR_CONFIG) {
        err->kind = ERROR_TRANSIENT;
    }
    return false;
}

bool epoch_folder_make(
    EpochFolder *folder, uint32_t number, int64_t made_s, EpochInfo *ret, Error *err)
{
    char text[EPOCH_FILE_SIZE];
    EpochInfo made;
    epoch_key_make(folder->master, number, made_s, text, &made);
    Arena *arena = arena_new(0);
    bool ok = put(path_of_key(folder, arena, made.id, SUFFIX), text, err) && load(folder, err);
    arena_free(arena);
    if (ok) {
        *ret = made;
    }
    return ok;
}

bool epoch_folder_use(EpochFolder *folder, const EpochInfo *epoch, Error *err)
{
    char id[KEY_ID_SIZE + 1];
    key_id_print(epoch->id, id);
    id[KEY_ID_SIZE - 1] = '\n';
    id[KEY_ID_SIZE] = '\0';
    Arena *arena = arena_new(0);
    bool ok = put(path_of(folder, arena, CURRENT), id, err) && load(folder, err);
    arena_free(arena);
    return ok;
}

static bool rewrap_file(EpochFolder *folder, Arena *arena, Str text, size_t *ret_count, Error *err)
{
    EpochInfo info;
    uint8_t by[KEY_ID_LEN];
    char fresh[EPOCH_FILE_SIZE];
    if (!epoch_key_describe(text, &info, by, err)) {
        return false;
    }
    if (memcmp(by, master_key_info(folder->master, KEY_MASTER, 0)->check, KEY_ID_LEN) == 0) {
        return true;
    }
    (*ret_count)++;
    return epoch_key_rewrap(folder->master, text, fresh, err) &&
           put(path_of_key(folder, arena, info.id, SUFFIX), fresh, err);
}

bool epoch_folder_rewrap(EpochFolder *folder, size_t *ret_count, Error *err)
{
    Files files;
    *ret_count = 0;
    Arena *arena = arena_new(0);
    bool ok = read_files(folder, arena, &files, err);
    for (size_t i = 0; ok && i < files.count; i++) {
        ok = rewrap_file(folder, arena, files.texts[i], ret_count, err);
    }
    arena_free(arena);
    return ok;
}

// ---- destroying ----

// In place, so that the old bytes are what is written over, on a file system that allows it.
static bool write_over(int fd)
{
    struct stat there;
    uint8_t random[EPOCH_FILE_SIZE];
    bool ok = fstat(fd, &there) == 0 && there.st_size <= (off_t)sizeof random;
    random_bytes(random, sizeof random);
    ok = ok && pwrite(fd, random, (size_t)there.st_size, 0) == (ssize_t)there.st_size;
    return ok && fsync(fd) == 0;
}

static bool sync_folder(const EpochFolder *folder)
{
    int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static bool destroy_file(const EpochFolder *folder, const char *path, Error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT || fail(folder, "destroy a key in", err);
    }
    bool ok = write_over(fd);
    close(fd);
    if (!ok) {
        return fail(folder, "write over a key in", err);
    }
    CRASH_POINT("epochs.overwritten");
    return unlink(path) == 0 || errno == ENOENT || fail(folder, "remove a key from", err);
}

// First out of the readers' sight: a half destroyed file would keep them from starting.
static bool set_aside(const EpochFolder *folder, const char *path, const char *aside, Error *err)
{
    if (rename(path, aside) != 0) {
        return errno == ENOENT || fail(folder, "destroy a key in", err);
    }
    if (!sync_folder(folder)) {
        return fail(folder, "sync", err);
    }
    CRASH_POINT("epochs.set_aside");
    return true;
}

bool epoch_folder_destroy(EpochFolder *folder, const uint8_t id[KEY_ID_LEN], Error *err)
{
    const EpochInfo *current = master_epoch_current(folder->master);
    char text[KEY_ID_SIZE];
    key_id_print(id, text);
    if (current != NULL && memcmp(current->id, id, KEY_ID_LEN) == 0) {
        return error_set(
            err, ERROR_CONFIG, "epoch key %s is the current one and cannot be destroyed", text);
    }
    Arena *arena = arena_new(0);
    const char *aside = path_of_key(folder, arena, id, DESTROYED);
    bool ok = set_aside(folder, path_of_key(folder, arena, id, SUFFIX), aside, err) &&
              destroy_file(folder, aside, err) &&
              (sync_folder(folder) || fail(folder, "sync", err)) && load(folder, err);
    arena_free(arena);
    return ok;
}
