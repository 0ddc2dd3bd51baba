// SPDX-License-Identifier: Apache-2.0
#include "common/service/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool read_all(int fd, const char *path, Buf *out, Error *err)
{
    char piece[8192];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
        }
        if (!buf_append(out, piece, (size_t)n)) {
            return error_set(
                err, ERROR_CONFIG, "'%s' is too large: over %zu bytes", path, out->max);
        }
    }
}

bool read_file(const char *path, Buf *out, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return error_set(err, ERROR_CONFIG, "cannot open '%s': %s", path, strerror(errno));
    }
    bool ok = read_all(fd, path, out, err);
    close(fd);
    return ok;
}
