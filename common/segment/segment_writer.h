// SPDX-License-Identifier: Apache-2.0
// Writer: records into a segment, whose bytes go to a sink as its frames are full (a spool file).
// Memory: one frame for each writer, and one packer that writers of a thread share.
#pragma once

#include "common/segment/segment.h"

// The compressor and its output.
typedef struct SegmentPacker SegmentPacker;
SegmentPacker *segment_packer_new(void);
void segment_packer_free(SegmentPacker *packer); // NULL-safe

// false with an error: the segment is of no use any more.
typedef bool (*SegmentSink)(void *ctx, Str bytes, Error *err);

typedef struct SegmentWriter SegmentWriter;

typedef struct SegmentOptions {
    const char *stream; // 1 to SEGMENT_STREAM_MAX bytes; copied
    int64_t created_us;
    char class_code; // 'A' to 'Z'
} SegmentOptions;

// Borrows the packer and the sink until segment_writer_free.
SegmentWriter *segment_writer_new(
    SegmentPacker *packer, const SegmentOptions *options, SegmentSink sink, void *ctx);
void segment_writer_free(SegmentWriter *writer); // NULL-safe
// PERMANENT for a record that no segment takes: its sequence does not ascend, it is too large.
// Nothing is written of that. Else the sink's error.
bool segment_writer_add(SegmentWriter *writer, const SegmentRecord *record, Error *err);
// The frame under way, then index and seek table. The segment covers first..last, which must hold
// all that was added. Nothing may be added afterwards.
bool segment_writer_finish(
    SegmentWriter *writer, uint64_t first, uint64_t last, SegmentHeader *ret, Error *err);
uint64_t segment_writer_bytes(const SegmentWriter *writer);  // handed to the sink so far
uint64_t segment_writer_events(const SegmentWriter *writer); // added so far
bool segment_writer_full(const SegmentWriter *writer);       // finish it before the next record
