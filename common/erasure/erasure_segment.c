// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_segment.h"

typedef struct Object {
    StorageWait *storage;
    const char *key;
} Object;

static bool read_object(void *ctx, uint64_t offset, char *into, size_t len, Error *err)
{
    const Object *object = ctx;
    return storage_wait_read(object->storage, str_from(object->key), offset, into, len, err);
}

bool erasure_segment_each(
    StorageWait *storage, const char *key, uint64_t bytes, SegmentEach each, void *ctx, Error *err)
{
    Object object = {storage, key};
    SegmentReader *reader = segment_reader_open(bytes, read_object, &object, err);
    SegmentRecord record;
    SegmentStep step = reader == NULL ? SEGMENT_BAD : segment_reader_next(reader, &record, err);
    while (step == SEGMENT_RECORD) {
        each(ctx, &record);
        step = segment_reader_next(reader, &record, err);
    }
    segment_reader_free(reader);
    return step == SEGMENT_END || error_wrap(err, "object '%.120s'", key);
}
