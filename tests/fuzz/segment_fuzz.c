// SPDX-License-Identifier: Apache-2.0
// links: stentor_segment
// Any bytes as a segment: refused, or records that a writer could have written. The first byte says
// how it is read: from a sequence, from a time, by subject; and whether the index's digest is put
// right first, so that the index itself is tried too.
#include <stdlib.h>
#include <string.h>

#include "common/codec/hash.h"
#include "common/segment/segment_bytes.h"
#include "common/segment/segment_headers.h"
#include "common/segment/segment_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BY_TIME = 1, BY_SUBJECT = 2, MEND = 4 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool read_input(void *ctx, uint64_t offset, char *into, size_t len, Error *err)
{
    const Str *input = ctx;
    (void)err;
    require(offset <= input->len && len <= input->len - offset); // never beyond its end
    memcpy(into, input->ptr + offset, len);
    return true;
}

// The index's digest, where the seek table points to one.
static void mend(char *bytes, size_t size)
{
    if (size < SEEK_FOOTER + SKIPPABLE_HEAD + SEEK_ENTRY) {
        return;
    }
    size_t table = SKIPPABLE_HEAD + (size_t)get_u32(bytes + size - SEEK_FOOTER) * SEEK_ENTRY;
    if (table > size - SEEK_FOOTER || table < SKIPPABLE_HEAD + SEEK_ENTRY) {
        return;
    }
    size_t end = size - SEEK_FOOTER - table;
    size_t len = get_u32(bytes + size - SEEK_FOOTER - SEEK_ENTRY);
    if (len > end || len <= SKIPPABLE_HEAD + INDEX_DIGEST) {
        return;
    }
    uint8_t digest[SHA256_LEN];
    const char *index = bytes + end - len + SKIPPABLE_HEAD;
    sha256(str_of(index, len - SKIPPABLE_HEAD - INDEX_DIGEST), digest);
    memcpy(bytes + end - INDEX_DIGEST, digest, INDEX_DIGEST);
}

static void read_headers(const SegmentRecord *record)
{
    static SegmentHeaderSpace space;
    const SegmentPair *pairs;
    size_t count;
    if (segment_headers_unpack(record, &space, &pairs, &count)) {
        require(count <= SEGMENT_PAIRS_MAX);
    }
}

static void read_all(SegmentReader *reader, unsigned how)
{
    const SegmentHeader *header = segment_reader_header(reader);
    SegmentRecord record;
    SegmentStep step;
    Error err = {0};
    uint64_t last = 0, count = 0;
    if ((how & BY_TIME) != 0) {
        segment_reader_from_time(reader, header->min_at_us);
    }
    segment_reader_filter(reader, (how & BY_SUBJECT) != 0 ? "ntf.*.>" : NULL);
    while ((step = segment_reader_next(reader, &record, &err)) == SEGMENT_RECORD) {
        require(record.sequence > last && record.subject.len > 0);
        require(record.sequence >= header->first && record.sequence <= header->last);
        last = record.sequence;
        count++;
        read_headers(&record);
    }
    require(count <= header->events);
    require(step == SEGMENT_END || (err.kind == ERROR_PERMANENT && err.text[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *bytes = malloc(size);
    memcpy(bytes, data + 1, size - 1);
    if ((data[0] & MEND) != 0) {
        mend(bytes, size - 1);
    }
    Str input = str_of(bytes, size - 1);
    Error err = {0};
    SegmentReader *reader = segment_reader_open(input.len, read_input, &input, &err);
    require(reader != NULL || (err.kind == ERROR_PERMANENT && err.text[0] != '\0'));
    if (reader != NULL) {
        read_all(reader, data[0]);
        segment_reader_free(reader);
    }
    free(bytes);
    return 0;
}
