// SPDX-License-Identifier: Apache-2.0
// The records of a log segment that is an object, one after the other. It blocks.
#pragma once

#include "common/segment/segment_reader.h"
#include "common/storage/storage_wait.h"

// The record lives during the call.
typedef void (*SegmentEach)(void *ctx, const SegmentRecord *record);
bool erasure_segment_each(
    StorageWait *storage, const char *key, uint64_t bytes, SegmentEach each, void *ctx, Error *err);
