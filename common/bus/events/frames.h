// SPDX-License-Identifier: Apache-2.0
// Frames: the bytes in ingest.accept_log.events: every event of an accept row as it is to be
// published, so that a sweep (or an audit) publishes exactly what the accepting process would have.
// Pure. Format: the head, a version byte; then per event one kind byte and four length-delimited
// fields (varint length, bytes): subject, event id, traceparent, payload. Headers of STATUS are not
// stored: they are made again from the payload. Behind the second head all of that is in zstd
// frames, one behind the other: ids, subjects and templates stand in a row again and again.
#pragma once

#include "common/bus/jetstream/bus.h"

#define FRAMES_HEAD STR("\x01")
#define FRAMES_HEAD_ZSTD STR("\x02")

enum { FRAMES_MAX = 1 << 16, FRAMES_BYTES_MAX = 256 * 1024 * 1024 };

typedef enum FrameKind { FRAME_REQUEST = 1, FRAME_DEFERRED, FRAME_STATUS } FrameKind;

typedef struct Frame {
    FrameKind kind;
    BusOut out;
} Frame;

// What follows a head; one behind the other they are the frames of all. The bytes live in `arena`.
Str frames_pack(const Frame *frames, size_t count, Arena *arena);
// The same for a row behind FRAMES_HEAD_ZSTD: packed frames as one zstd frame.
Str frames_compress(Str packed, Arena *arena);
// Of both heads. What the frames point to lives in `arena` or in `bytes`. ERROR_PERMANENT when they
// are not frames.
bool frames_unpack(Str bytes, Arena *arena, Frame **ret_frames, size_t *ret_count, Error *err);
