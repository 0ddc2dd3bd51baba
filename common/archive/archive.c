// SPDX-License-Identifier: Apache-2.0
#include "common/archive/archive.h"

#include "common/archive/database.h"
#include "common/archive/owner.h"

bool archive_open(Archive *archive, const ArchiveOptions *options, Error *err)
{
    *archive = (Archive){.options = options};
    archive->storage = storage_wait_open(&options->storage, err);
    if (archive->storage == NULL) {
        return error_wrap(err, "STENTOR_STORAGE_URL");
    }
    archive->pg = archive_connect(options->database_url, "stentor-archive", err);
    return archive->pg != NULL;
}

void archive_close(Archive *archive)
{
    storage_wait_close(archive->storage);
    PQfinish(archive->pg);
    *archive = (Archive){0};
}

bool archive_reopen_storage(Archive *archive, Error *err)
{
    storage_wait_close(archive->storage);
    archive->storage = storage_wait_open(&archive->options->storage, err);
    return archive->storage != NULL;
}

void archive_step(const Archive *archive, const char *step, const char *unit)
{
    if (archive->options->progress.step != NULL) {
        archive->options->progress.step(archive->options->progress.ctx, step, unit);
    }
}

void archive_more(Archive *archive, uint64_t rows, uint64_t bytes)
{
    Error ignored; // taken by another: the step's end notices it
    (void)owner_renew(archive, &ignored);
    if (archive->options->progress.more != NULL) {
        archive->options->progress.more(archive->options->progress.ctx, rows, bytes);
    }
}
