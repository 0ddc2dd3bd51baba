// SPDX-License-Identifier: Apache-2.0
// Reading, names and removal. What is written first stands in storage_temporary.c.
#define _GNU_SOURCE // O_PATH
#include "common/storage/storage_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/storage_temporary.h"

bool storage_folder_error(Str key, const char *what, Error *err)
{
    ErrorKind kind = ERROR_TRANSIENT;
    const char *hint = "";
    switch (errno) {
    case EACCES:
    case EPERM:
    case EROFS:
        kind = ERROR_CONFIG;
        hint = " (HINT: the rights of STENTOR_STORAGE_URL's folder)";
        break;
    case ENOENT: // its parent, or it was removed under our hands
        kind = ERROR_CONFIG;
        hint = " (HINT: STENTOR_STORAGE_URL's folder, or its parent, is missing)";
        break;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EFBIG:
        kind = ERROR_PERMANENT;
        break;
    default:
        break; // ENOSPC, EDQUOT, EIO, ESTALE, EMFILE: may end
    }
    return error_set(
        err, kind, "object '" STR_FMT "': %s: %s%s", STR_ARG(str_slice(key, 0, 100)), what,
        strerror(errno), hint);
}

void storage_folder_info(const struct stat *file, StorageInfo *ret)
{
    *ret = (StorageInfo){
        .bytes = (uint64_t)file->st_size,
        .modified_us =
            (int64_t)file->st_mtim.tv_sec * 1000000 + (int64_t)file->st_mtim.tv_nsec / 1000,
    };
    // Each PUT sets the time to the nanosecond (storage_temporary.c): no two of a key are equal.
    (void)snprintf(
        ret->etag, sizeof ret->etag, "%llx.%09lx-%llx-%llx", (long long)file->st_mtim.tv_sec,
        (unsigned long)file->st_mtim.tv_nsec, (long long)file->st_size,
        (unsigned long long)file->st_ino);
}

static void name_object(const StorageFolder *folder, const char *sub, Str key, char *out)
{
    // Cannot be cut: STORAGE_PATH_SIZE has room for each of them.
    (void)snprintf(out, STORAGE_PATH_SIZE, "%s/%s" STR_FMT, folder->root, sub, STR_ARG(key));
}

static const char OWNER[] = ".owner/";

// ---- durable names ----

bool storage_folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = why;
    return synced;
}

// Every folder of `path` up to the root. Also those that were there: whoever made them may have
// been killed before it synced them.
static bool sync_names(const StorageFolder *folder, const char *path)
{
    char part[STORAGE_PATH_SIZE];
    (void)str_to_c(str_from(path), part, sizeof part);
    size_t root = strlen(folder->root);
    for (char *slash; (slash = strrchr(part, '/')) != NULL && slash >= part + root;) {
        *slash = '\0';
        // One that a removal has tidied away needs no sync.
        if (!storage_folder_sync(part) && errno != ENOENT && errno != ENOTDIR) {
            return false;
        }
    }
    return true;
}

bool storage_folder_shared(const StorageFolder *folder)
{
    struct stat root;
    return stat(folder->root, &root) == 0 &&
           (root.st_mode & (S_ISGID | S_IRWXG | S_IRWXO)) == (S_ISGID | S_IRGRP | S_IXGRP);
}

static bool make_folders(const StorageFolder *folder, const char *path)
{
    bool shared = storage_folder_shared(folder);
    char part[STORAGE_PATH_SIZE];
    (void)str_to_c(str_from(path), part, sizeof part);
    for (char *at = part + strlen(folder->root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return false;
        }
        // Also one that is there: whoever made it may have been killed before this line.
        if (shared && chmod(part, 0755) != 0) {
            return false;
        }
        *at = '/';
    }
    return true;
}

// From the object's folder upwards; the first that is not empty ends it.
static void tidy_folders(const StorageFolder *folder, const char *path)
{
    char part[STORAGE_PATH_SIZE];
    (void)str_to_c(str_from(path), part, sizeof part);
    size_t root = strlen(folder->root);
    bool empty = true;
    for (char *slash; empty && (slash = strrchr(part, '/')) != NULL && slash > part + root;) {
        *slash = '\0';
        empty = rmdir(part) == 0;
    }
}

// ---- the lock: for names alone, never while bytes are written ----

static int lock_names(const StorageFolder *folder)
{
    char path[STORAGE_PATH_SIZE];
    name_object(folder, ".tmp/lock", STR_EMPTY, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            (void)close(fd);
            return -1;
        }
    }
    return fd;
}

// ---- PUT ----

// Before the object has its name: killed between the two, an owner without an object remains,
// which no reader sees and the next PUT or DELETE of the key replaces.
static bool put_owner(const StorageFolder *folder, const StoragePut *put, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    name_object(folder, OWNER, put->key, path);
    if (put->installation == NULL) {
        return unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR ||
               storage_folder_error(put->key, "its owner cannot be removed", err);
    }
    char temporary[STORAGE_PATH_SIZE];
    if (!storage_temporary_text(folder, str_from(put->installation), temporary) ||
        !make_folders(folder, path) || rename(temporary, path) != 0 || !sync_names(folder, path)) {
        return storage_folder_error(put->key, "its owner cannot be written", err);
    }
    return true;
}

static StorageOutcome check_condition(const StoragePut *put, const char *path, Error *err)
{
    struct stat file;
    bool there = lstat(path, &file) == 0;
    if (!there && errno != ENOENT) {
        storage_folder_error(put->key, "cannot be written", err);
        return STORAGE_FAILED;
    }
    if (there && !S_ISREG(file.st_mode)) {
        errno = EISDIR;
        storage_folder_error(put->key, "cannot be written", err);
        return STORAGE_FAILED;
    }
    StorageInfo info = {.bytes = 0};
    if (there) {
        storage_folder_info(&file, &info);
    }
    bool holds = put->condition == STORAGE_ALWAYS ||
                 (put->condition == STORAGE_IF_ABSENT && !there) ||
                 (put->condition == STORAGE_IF_ETAG && there && strcmp(info.etag, put->etag) == 0);
    return holds ? STORAGE_DONE : STORAGE_PRECONDITION;
}

// Under the lock.
static StorageOutcome give_name(
    const StorageFolder *folder, const StoragePut *put, const char *temporary, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    name_object(folder, "", put->key, path);
    if (!make_folders(folder, path)) {
        storage_folder_error(put->key, "its folder cannot be made", err);
        return STORAGE_FAILED;
    }
    StorageOutcome outcome = check_condition(put, path, err);
    if (outcome == STORAGE_DONE && !put_owner(folder, put, err)) {
        return STORAGE_FAILED;
    }
    if (outcome == STORAGE_DONE && rename(temporary, path) != 0) {
        storage_folder_error(put->key, "cannot be written", err);
        return STORAGE_FAILED;
    }
    // Also of what was there: whoever has put it may have been killed before this line.
    if (outcome != STORAGE_FAILED && !sync_names(folder, path)) {
        storage_folder_error(put->key, "its folder cannot be synced", err);
        return STORAGE_FAILED;
    }
    return outcome;
}

StorageOutcome storage_folder_publish(
    const StorageFolder *folder, const StoragePut *put, const char *temporary, StorageInfo *ret,
    Error *err)
{
    StorageOutcome outcome = STORAGE_FAILED;
    int lock = lock_names(folder);
    if (lock < 0) {
        storage_folder_error(put->key, "the folder cannot be locked", err);
    } else {
        outcome = give_name(folder, put, temporary, err);
    }
    if (outcome != STORAGE_DONE) {
        storage_folder_discard(temporary);
    } else {
        outcome = storage_folder_head(folder, put->key, ret, err);
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return outcome;
}

// ---- GET, HEAD, DELETE ----

static bool read_owner(const StorageFolder *folder, Str key, StorageInfo *info, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    name_object(folder, OWNER, key, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR ||
               storage_folder_error(key, "its owner cannot be read", err);
    }
    ssize_t got = read(fd, info->installation, sizeof info->installation - 1);
    (void)close(fd);
    info->installation[got > 0 ? got : 0] = '\0';
    return got >= 0 || storage_folder_error(key, "its owner cannot be read", err);
}

// One part of the key after the other, so that no link leads elsewhere. -1 with errno.
static int open_below(const char *root, Str key)
{
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    Str rest = key, part;
    while (folder >= 0 && str_split(&rest, '/', &part)) {
        char name[STORAGE_KEY_MAX + 1];
        int flags = rest.len > 0 ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
        int next = str_to_c(part, name, sizeof name)
                       ? openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW)
                       : -1;
        int failed = errno;
        (void)close(folder);
        errno = failed;
        folder = next;
    }
    return folder;
}

static int open_object(const StorageFolder *folder, Str key)
{
    char path[STORAGE_PATH_SIZE];
    if (folder->foreign) {
        return open_below(folder->root, key);
    }
    name_object(folder, "", key, path);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

StorageOutcome storage_folder_open(
    const StorageFolder *folder, Str key, int *ret_fd, StorageInfo *ret, Error *err)
{
    int fd = open_object(folder, key);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
        return STORAGE_ABSENT;
    }
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) {
        storage_folder_error(key, "cannot be read", err);
        return STORAGE_FAILED;
    }
    if (!S_ISREG(file.st_mode)) {
        (void)close(fd);
        return STORAGE_ABSENT;
    }
    storage_folder_info(&file, ret);
    *ret_fd = fd;
    return STORAGE_DONE;
}

StorageOutcome storage_folder_head(
    const StorageFolder *folder, Str key, StorageInfo *ret, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    struct stat file;
    if (folder->foreign) {
        int fd = -1;
        StorageOutcome outcome = storage_folder_open(folder, key, &fd, ret, err);
        if (outcome == STORAGE_DONE) {
            (void)close(fd);
        }
        return outcome;
    }
    name_object(folder, "", key, path);
    bool there = lstat(path, &file) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) {
        storage_folder_error(key, "cannot be read", err);
        return STORAGE_FAILED;
    }
    if (!there || !S_ISREG(file.st_mode)) {
        return STORAGE_ABSENT;
    }
    storage_folder_info(&file, ret);
    return read_owner(folder, key, ret, err) ? STORAGE_DONE : STORAGE_FAILED;
}

// Under the lock.
static bool remove_name(const StorageFolder *folder, Str key, const char *path, Error *err)
{
    bool removed = unlink(path) == 0;
    if (!removed && errno != ENOENT && errno != ENOTDIR && errno != EISDIR) {
        return storage_folder_error(key, "cannot be deleted", err);
    }
    // Also of what was not there: whoever has removed it may have been killed before this line.
    return sync_names(folder, path) ||
           storage_folder_error(key, "its folder cannot be synced", err);
}

StorageOutcome storage_folder_remove(const StorageFolder *folder, Str key, Error *err)
{
    char path[STORAGE_PATH_SIZE];
    char owner[STORAGE_PATH_SIZE];
    name_object(folder, "", key, path);
    name_object(folder, OWNER, key, owner);
    int lock = lock_names(folder);
    if (lock < 0) {
        if (errno == ENOENT) {
            return STORAGE_DONE; // nothing was ever put
        }
        storage_folder_error(key, "the folder cannot be locked", err);
        return STORAGE_FAILED;
    }
    bool removed = remove_name(folder, key, path, err);
    if (removed) {
        (void)unlink(owner);
        tidy_folders(folder, path);
        tidy_folders(folder, owner);
    }
    (void)close(lock);
    return removed ? STORAGE_DONE : STORAGE_FAILED;
}
