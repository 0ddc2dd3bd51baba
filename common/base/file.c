// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- reading ----

typedef enum ReadEnd { READ_WHOLE, READ_LONGER, READ_FAILED } ReadEnd;

// At most `size` bytes; LONGER: the file has more.
static ReadEnd read_bytes(int fd, char *bytes, size_t size, size_t *ret_len)
{
    char more;
    *ret_len = 0;
    for (;;) {
        bool full = *ret_len == size;
        ssize_t n = read(fd, full ? &more : bytes + *ret_len, full ? 1 : size - *ret_len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || full) {
            return n == 0 ? READ_WHOLE : n < 0 ? READ_FAILED : READ_LONGER;
        }
        *ret_len += (size_t)n;
    }
}

static bool read_file(
    const char *path, char *bytes, size_t size, size_t *ret_len, ErrorKind too_long, Error *err)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    ReadEnd end = fd < 0 ? READ_FAILED : read_bytes(fd, bytes, size, ret_len);
    int number = errno;
    if (fd > STDIN_FILENO) {
        close(fd);
    }
    if (end == READ_FAILED) {
        return error_set(
            err, ERROR_CONFIG, "cannot %s '%s': %s", fd < 0 ? "open" : "read", path,
            strerror(number));
    }
    return end == READ_WHOLE ||
           error_set(err, too_long, "'%s' is longer than %zu bytes", path, size);
}

bool file_read(const char *path, size_t max, Arena *arena, Str *ret, Error *err)
{
    char *bytes = arena_alloc(arena, max + 1);
    size_t len = 0;
    if (!read_file(path, bytes, max, &len, ERROR_PERMANENT, err)) {
        return false;
    }
    *ret = str_of(bytes, len);
    return true;
}

bool file_append(const char *path, Buf *out, Error *err)
{
    size_t room = out->max - out->len, len = 0;
    (void)buf_reserve(out, room);
    bool ok = read_file(path, out->ptr + out->len, room, &len, ERROR_CONFIG, err);
    out->len += ok ? len : 0;
    return ok;
}

// ---- putting ----

enum { PATH_SIZE = 1024 };

static bool fail(const char *what, const char *path, Error *err)
{
    return error_set(err, ERROR_CONFIG, "cannot %s '%s': %s", what, path, strerror(errno));
}

static bool has_text(const char *path, Str text)
{
    Arena *arena = arena_new(0);
    Str there = STR_EMPTY;
    Error ignored;
    bool same = file_read(path, text.len, arena, &there, &ignored) && str_eq(there, text);
    arena_free(arena);
    return same;
}

// The file that is there keeps its text; its rights are made those that are wanted.
static bool set_rights(const char *path, const FileRights *rights, Error *err)
{
    struct stat there;
    if (stat(path, &there) != 0) {
        return fail("read the attributes of", path, err);
    }
    bool other_group = rights->group != (gid_t)-1 && there.st_gid != rights->group;
    if (other_group && chown(path, (uid_t)-1, rights->group) != 0) {
        return fail("change the group of", path, err);
    }
    return (there.st_mode & 07777) == rights->mode || chmod(path, rights->mode) == 0 ||
           fail("change the mode of", path, err);
}

static bool write_all(int fd, Str text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        text = str_slice(text, n > 0 ? (size_t)n : 0, text.len);
    }
    return true;
}

// The name is durable once its folder is.
static bool sync_folder(const char *path)
{
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

// link() does not replace: of two who find nothing there, the second keeps what the first made.
static bool move_there(const char *made, const char *path, bool replaces, FilePut *ret, Error *err)
{
    bool ok = replaces ? rename(made, path) == 0 : link(made, path) == 0;
    bool there = !ok && !replaces && errno == EEXIST;
    if (!ok && !there) {
        return fail("write", path, err);
    }
    *ret = there ? FILE_PRESENT : FILE_WRITTEN;
    return sync_folder(path) || fail("sync the folder of", path, err);
}

static bool write_beside(const char *made, int fd, Str text, const FileRights *rights, Error *err)
{
    bool grouped = rights->group == (gid_t)-1 || fchown(fd, (uid_t)-1, rights->group) == 0;
    bool ok = grouped && fchmod(fd, rights->mode) == 0 && write_all(fd, text) && fsync(fd) == 0;
    return ok || fail("write", made, err);
}

bool file_put(
    const char *path, Str text, const FileRights *rights, bool replaces, FilePut *ret, Error *err)
{
    char made[PATH_SIZE];
    if (access(path, F_OK) == 0 && (!replaces || has_text(path, text))) {
        *ret = FILE_PRESENT;
        return set_rights(path, rights, err);
    }
    int len = snprintf(made, sizeof made, "%s" FILE_TEMPORARY "XXXXXX", path);
    if (len < 0 || (size_t)len >= sizeof made) {
        return error_set(err, ERROR_CONFIG, "the path '%.100s...' is too long", path);
    }
    int fd = mkstemp(made); // 0600
    if (fd < 0) {
        return fail("write", path, err);
    }
    bool ok = write_beside(made, fd, text, rights, err);
    close(fd);
    ok = ok && move_there(made, path, replaces, ret, err);
    if (!ok || !replaces) {
        unlink(made);
    }
    return ok;
}
