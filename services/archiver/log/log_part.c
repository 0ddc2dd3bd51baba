// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_part.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/eventlog/log_streams.h"
#include "common/storage/spool.h"

struct LogPart {
    SegmentWriter *writer;
    Spool spool;
    LogTenants *tenants;
};

static bool spool(void *ctx, Str bytes, Error *err)
{
    LogPart *part = ctx;
    return spool_append(&part->spool, bytes.ptr, bytes.len) || spool_failure(&part->spool, err);
}

LogPart *log_part_open(
    SegmentPacker *packer, const SegmentOptions *options, const char *folder, Error *err)
{
    SpoolPlace place = {.folder = folder, .option = "STENTOR_SEGMENT_SPOOL_DIR"};
    LogPart *part = xcalloc(1, sizeof *part);
    if (!spool_open(&part->spool, &place, err)) {
        free(part);
        return NULL;
    }
    part->tenants = log_tenants_new();
    part->writer = segment_writer_new(packer, options, spool, part);
    return part;
}

void log_part_free(LogPart *part)
{
    if (part != NULL) {
        segment_writer_free(part->writer);
        spool_close(&part->spool);
        log_tenants_free(part->tenants);
        free(part);
    }
}

bool log_part_add(LogPart *part, const SegmentRecord *record, Str tenant, Error *err)
{
    log_tenants_add(part->tenants, tenant);
    return segment_writer_add(part->writer, record, err);
}

uint64_t log_part_bytes(const LogPart *part)
{
    return segment_writer_bytes(part->writer);
}

bool log_part_full(const LogPart *part)
{
    return segment_writer_full(part->writer);
}

// Twenty digits, so that a listing is in the order of sequences.
static void name_object(LogFile *file)
{
    char hash[2 * 8 + 1];
    hex_encode(file->sha256, 8, hash);
    const SegmentHeader *h = &file->header;
    (void)snprintf(
        file->key, sizeof file->key, "%s/%s/class=%s/%lld/%020llu-%020llu-%s.seg",
        log_stream_folder(log_stream(h->stream)), h->stream, log_class_name(h->class_code),
        (long long)h->created_us, (unsigned long long)h->first, (unsigned long long)h->last, hash);
}

bool log_part_finish(LogPart *part, uint64_t first, uint64_t last, LogFile *ret, Error *err)
{
    *ret = (LogFile){.fd = part->spool.fd, .tenants = part->tenants};
    if (!segment_writer_finish(part->writer, first, last, &ret->header, err) ||
        !spool_finish(&part->spool, ret->sha256, err)) {
        return false;
    }
    ret->bytes = segment_writer_bytes(part->writer);
    name_object(ret);
    return true;
}
