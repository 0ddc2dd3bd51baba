// SPDX-License-Identifier: Apache-2.0
// A message's headers in a segment. Most follow from subject and payload (Nats-Msg-Id is the
// event's id, a status has CloudEvents headers), so a record carries only what does not: a
// traceparent, a replay's mark, or all of them where the rule does not hold. Pure.
#pragma once

#include "common/segment/segment.h"

enum { SEGMENT_PAIRS_MAX = 32, SEGMENT_PAIRS_BYTES = 16 * 1024 };

typedef struct SegmentPair {
    Str name, value;
} SegmentPair;

// Room for what is derived, and for packed pairs.
typedef struct SegmentHeaderSpace {
    char text[512];
    char packed[SEGMENT_PAIRS_BYTES];
    SegmentPair pairs[SEGMENT_PAIRS_MAX];
} SegmentHeaderSpace;

// Sets the record's header_form and headers; they point into `space`. PERMANENT: too many headers.
bool segment_headers_pack(
    SegmentRecord *record, const SegmentPair *pairs, size_t count, SegmentHeaderSpace *space,
    Error *err);
// All headers of a record, in `space` and the record. false: its headers are no pairs.
bool segment_headers_unpack(
    const SegmentRecord *record, SegmentHeaderSpace *space, const SegmentPair **ret,
    size_t *ret_count);
// The value of one; empty when it is not there.
Str segment_headers_get(const SegmentPair *pairs, size_t count, Str name);

// The notification's id in an event (field 3 of its Meta), found without unpacking it; empty: none.
Str segment_notification_id(Str payload);
Str segment_tenant(Str payload); // field 2
