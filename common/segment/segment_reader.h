// SPDX-License-Identifier: Apache-2.0
// Reader: the records of a segment in order, over a callback that reads any range of its bytes (a
// file, an object). The bytes are foreign: whatever they are, a reader gives records that a writer
// could have written, or PERMANENT with what is wrong. Memory: the index and one frame.
#pragma once

#include "common/segment/segment.h"

// Exactly `len` bytes from `offset` into `into`.
typedef bool (*SegmentRead)(void *ctx, uint64_t offset, char *into, size_t len, Error *err);

typedef struct SegmentReader SegmentReader;

// Reads seek table and index. NULL: read's error, or PERMANENT for what is no segment.
SegmentReader *segment_reader_open(uint64_t size, SegmentRead read, void *ctx, Error *err);
void segment_reader_free(SegmentReader *reader); // NULL-safe
const SegmentHeader *segment_reader_header(const SegmentReader *reader);
const SegmentFrame *segment_reader_frames(const SegmentReader *reader, size_t *ret_count);

// Where the next record is looked for: the first at or after this sequence; the first stored at or
// after this time and every such one behind it. Frames before it are not read.
void segment_reader_from_sequence(SegmentReader *reader, uint64_t sequence);
void segment_reader_from_time(SegmentReader *reader, int64_t at_us);
// Only records whose subject matches, with NATS's `*` and `>`; NULL: all. Borrowed.
void segment_reader_filter(SegmentReader *reader, const char *subjects);

typedef enum SegmentStep { SEGMENT_RECORD, SEGMENT_END, SEGMENT_BAD } SegmentStep;
// The record points into the frame: valid until the next call.
SegmentStep segment_reader_next(SegmentReader *reader, SegmentRecord *ret, Error *err);

// "ntf.*.acme", "ntf.>"
bool segment_subject_matches(Str pattern, Str subject);
