// SPDX-License-Identifier: Apache-2.0
#include "common/storage/storage_temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/arena.h"

enum { CHUNK = 256 * 1024, LEFT_BEHIND_S = 24 * 3600 };

// ---- the folder itself ----

// What a killed PUT has left.
static void remove_left_behind(const char *folder)
{
    char path[STORAGE_PATH_SIZE + 256];
    struct stat file;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return;
    }
    time_t now = time(NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "put.", 4) == 0 && lstat(path, &file) == 0 &&
            now - file.st_ctim.tv_sec > LEFT_BEHIND_S) {
            (void)unlink(path);
        }
    }
    (void)closedir(dir);
}

// The root is made when its parent is there: what a wrong URL names is not made up.
static bool make_root(const StorageFolder *folder)
{
    char parent[STORAGE_PATH_SIZE];
    if (mkdir(folder->root, 0700) != 0) {
        return errno == EEXIST;
    }
    (void)snprintf(parent, sizeof parent, "%s/..", folder->root);
    return storage_folder_sync(parent);
}

static int make_temporary(const StorageFolder *folder, char temporary[STORAGE_PATH_SIZE])
{
    if (!make_root(folder)) {
        return -1;
    }
    (void)snprintf(temporary, STORAGE_PATH_SIZE, "%s/.tmp", folder->root);
    if (mkdir(temporary, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    remove_left_behind(temporary);
    (void)snprintf(temporary, STORAGE_PATH_SIZE, "%s/.tmp/put.XXXXXX", folder->root);
    return mkstemp(temporary); // 0600
}

// ---- bytes ----

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

// The next bytes of `put` at `at`; 0: there are none any more, -1: errno.
static ssize_t next_piece(const StoragePut *put, uint64_t at, char *buffer, const char **ret)
{
    size_t wanted = put->len - at < CHUNK ? (size_t)(put->len - at) : CHUNK;
    if (put->bytes != NULL) {
        *ret = (const char *)put->bytes + at;
        return (ssize_t)wanted;
    }
    *ret = buffer;
    ssize_t got;
    do {
        got = pread(put->fd, buffer, wanted, (off_t)at);
    } while (got < 0 && errno == EINTR);
    return got;
}

static bool copy(const StoragePut *put, int to, char *buffer, Sha256 *digest, Error *err)
{
    for (uint64_t at = 0; at < put->len;) {
        const char *piece;
        ssize_t got = next_piece(put, at, buffer, &piece);
        if (got == 0) {
            return error_set(
                err, ERROR_PERMANENT, "object '" STR_FMT "': its source has %llu bytes, not %llu",
                STR_ARG(str_slice(put->key, 0, 120)), (unsigned long long)at,
                (unsigned long long)put->len);
        }
        if (got < 0 || !write_all(to, piece, (size_t)got)) {
            return storage_folder_error(put->key, "cannot be written", err);
        }
        sha256_add(digest, str_of(piece, (size_t)got));
        at += (uint64_t)got;
    }
    return true;
}

static bool copy_checked(const StoragePut *put, int to, Error *err)
{
    uint8_t found[SHA256_LEN];
    char *buffer = xmalloc(CHUNK);
    Sha256 *digest = sha256_begin();
    bool copied = copy(put, to, buffer, digest, err);
    sha256_end(digest, found);
    free(buffer);
    return copied && (memcmp(found, put->sha256, sizeof found) == 0 ||
                      error_set(
                          err, ERROR_PERMANENT, "object '" STR_FMT "': its source has other bytes",
                          STR_ARG(str_slice(put->key, 0, 120))));
}

// The time to the nanosecond, where the file system would take that of its last tick: the ETag.
static bool settle(int fd)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    (void)clock_gettime(CLOCK_REALTIME, &times[1]);
    return futimens(fd, times) == 0 && fsync(fd) == 0;
}

bool storage_folder_write(
    const StorageFolder *folder, const StoragePut *put, char temporary[STORAGE_PATH_SIZE],
    Error *err)
{
    int fd = make_temporary(folder, temporary);
    if (fd < 0) {
        return storage_folder_error(put->key, "cannot be written", err);
    }
    bool written = copy_checked(put, fd, err);
    if (written && storage_folder_shared(folder) && fchmod(fd, 0644) != 0) {
        written = storage_folder_error(put->key, "cannot be shared", err);
    }
    if (written && !settle(fd)) {
        written = storage_folder_error(put->key, "cannot be synced", err);
    }
    if (close(fd) != 0 && written) {
        written = storage_folder_error(put->key, "cannot be written", err);
    }
    if (!written) {
        storage_folder_discard(temporary);
    }
    return written;
}

bool storage_temporary_text(
    const StorageFolder *folder, Str text, char temporary[STORAGE_PATH_SIZE])
{
    int fd = make_temporary(folder, temporary);
    if (fd < 0) {
        return false;
    }
    bool written = write_all(fd, text.ptr, text.len) && fsync(fd) == 0;
    int why = errno;
    (void)close(fd);
    if (!written) {
        storage_folder_discard(temporary);
        errno = why;
    }
    return written;
}

void storage_folder_discard(const char *temporary)
{
    (void)unlink(temporary);
}
