// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(const char *path, size_t max, Arena *arena, Str *ret, Error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot open '%s': %s", path, strerror(errno));
    }
    char *bytes = arena_alloc(arena, max + 1);
    size_t len = fread(bytes, 1, max + 1, file);
    bool failed = ferror(file) != 0;
    if (file != stdin) {
        fclose(file);
    }
    if (failed) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    if (len > max) {
        return error_set(err, ERROR_PERMANENT, "'%s' is longer than %zu bytes", path, max);
    }
    *ret = str_of(bytes, len);
    return true;
}

// ---- putting ----

enum { PATH_SIZE = 1024, SAME_MAX = 256 * 1024 };

static bool fail(const char *what, const char *path, Error *err)
{
    return error_set(err, ERROR_CONFIG, "cannot %s '%s': %s", what, path, strerror(errno));
}

static bool has_text(const char *path, Str text)
{
    Arena *arena = arena_new(0);
    Str there = STR_EMPTY;
    Error ignored;
    bool same = text.len <= SAME_MAX && file_read(path, SAME_MAX, arena, &there, &ignored) &&
                str_eq(there, text);
    arena_free(arena);
    return same;
}

// The file that is there keeps its text; its rights are made those that are wanted.
static bool set_rights(const char *path, const FileRights *rights, Error *err)
{
    struct stat there;
    if (stat(path, &there) != 0) {
        return fail("look at", path, err);
    }
    bool other_group = rights->group != (gid_t)-1 && there.st_gid != rights->group;
    if (other_group && chown(path, (uid_t)-1, rights->group) != 0) {
        return fail("give a group to", path, err);
    }
    return (there.st_mode & 07777) == rights->mode || chmod(path, rights->mode) == 0 ||
           fail("set the rights of", path, err);
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
