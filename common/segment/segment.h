// SPDX-License-Identifier: Apache-2.0
// A log segment: messages of one stream and one retention class as a file. Pure: no I/O, no clock.
//
//   zstd frame, zstd frame ...   records; level 1, content checksum, about 1 MiB before compression
//   skippable frame 0x184D2A5D   the index: header record, then one entry for each frame
//   skippable frame 0x184D2A5E   the seek table of the zstd seekable format
//
// `zstd -d` gives the records without the index. Law: a segment says which sequences it covers
// (first..last); what it does not hold of them was of another class or removed from the stream.
// Frames are independent. The same records give the same bytes with the same release of zstd.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

enum {
    SEGMENT_STREAM_MAX = 63,
    SEGMENT_FRAME_BYTES = 1024 * 1024,      // of records; one larger record has its own frame
    SEGMENT_RECORD_MAX = 2 * 1024 * 1024,   // encoded
    SEGMENT_FRAME_MAX = SEGMENT_RECORD_MAX, // of records, also compressed and read back
    SEGMENT_FRAMES_MAX = 32768,             // the index has at most 2 MiB
    SEGMENT_SUBJECT_MAX = 1024,
    SEGMENT_PAYLOAD_MAX = 1024 * 1024,
};

// How the record's headers are to be read (segment_headers.h).
typedef enum SegmentHeaders {
    SEGMENT_HEADERS_DERIVED, // all follow from subject and payload
    SEGMENT_HEADERS_MORE,    // those, and the ones of the record
    SEGMENT_HEADERS_OWN,     // only those of the record
} SegmentHeaders;

typedef struct SegmentRecord {
    uint64_t sequence; // above 0, ascending
    int64_t stored_at_us;
    Str subject; // 1 to SEGMENT_SUBJECT_MAX bytes
    SegmentHeaders header_form;
    Str headers; // packed pairs; empty when derived
    Str payload;
} SegmentRecord;

// What a segment says of itself.
typedef struct SegmentHeader {
    char stream[SEGMENT_STREAM_MAX + 1];
    int64_t created_us; // the stream's creation time
    char class_code;    // of the retention class: 'R', 'S', 'B'
    uint64_t first, last;
    uint64_t events;
    int64_t min_at_us, max_at_us; // of the records; 0 when there is none
} SegmentHeader;

// One entry of the index.
typedef struct SegmentFrame {
    uint64_t first, last; // sequences of its records
    int64_t min_at_us, max_at_us;
    uint32_t events;
    uint32_t compressed_bytes, bytes;
} SegmentFrame;
