// SPDX-License-Identifier: Apache-2.0
#include "common/storage/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool spool_open(Spool *spool, const SpoolPlace *place, Error *err)
{
    char path[4096];
    *spool = (Spool){.fd = -1, .place = *place};
    int len = snprintf(path, sizeof path, "%s/stentor-spool-XXXXXX", place->folder);
    errno = ENAMETOOLONG;
    spool->fd = len < (int)sizeof path ? mkstemp(path) : -1;
    if (spool->fd < 0) {
        return error_set(
            err, ERROR_TRANSIENT, "spool file in '%.100s': %s (HINT: %s)", place->folder,
            strerror(errno), place->option);
    }
    (void)unlink(path);
    spool->digest = sha256_begin();
    return true;
}

static void end_digest(Spool *spool, uint8_t out[SHA256_LEN])
{
    if (spool->digest != NULL) {
        sha256_end(spool->digest, out);
        spool->digest = NULL;
    }
}

void spool_close(Spool *spool)
{
    uint8_t ignored[SHA256_LEN];
    end_digest(spool, ignored);
    if (spool->fd >= 0) {
        (void)close(spool->fd);
    }
    *spool = (Spool){.fd = -1};
}

bool spool_append(void *ctx, const void *bytes, size_t len)
{
    Spool *spool = ctx;
    const char *at = bytes;
    sha256_add(spool->digest, str_of(bytes, len));
    while (len > 0 && spool->error == 0) {
        ssize_t written = write(spool->fd, at, len);
        if (written > 0) {
            at += written;
            len -= (size_t)written;
            spool->bytes += (uint64_t)written;
        } else if (written == 0 || errno != EINTR) {
            spool->error = written == 0 ? ENOSPC : errno;
        }
    }
    return spool->error == 0;
}

bool spool_failure(const Spool *spool, Error *err)
{
    return error_set(
        err, ERROR_TRANSIENT, "spool file in '%.100s': %s (HINT: free space in %s)",
        spool->place.folder, strerror(spool->error), spool->place.option);
}

bool spool_finish(Spool *spool, uint8_t ret_sha256[SHA256_LEN], Error *err)
{
    if (spool->error != 0) {
        return spool_failure(spool, err);
    }
    end_digest(spool, ret_sha256);
    return true;
}

bool spool_read(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    const Spool *spool = ctx;
    char *at = into;
    while (len > 0) {
        ssize_t got = pread(spool->fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return error_set(
                err, ERROR_TRANSIENT, "spool file in '%.100s': %s", spool->place.folder,
                got < 0 ? strerror(errno) : "it ends early");
        }
        at += got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}
