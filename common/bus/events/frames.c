// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/frames.h"

#include <assert.h>
#include <string.h>
#include <zstd.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"

enum {
    VARINT_MAX = 10,
    // What repeats is long, and half of the rest is sealed: level 1 finds no more and takes twice
    // the time, three times for a request by itself.
    ZSTD_LEVEL = -1,
};

static size_t varint_size(size_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7) {
        size++;
    }
    return size;
}

static size_t field_size(Str field)
{
    return varint_size(field.len) + field.len;
}

static char *put_field(char *at, Str field)
{
    size_t value = field.len;
    for (; value >= 0x80; value >>= 7) {
        *at++ = (char)(0x80 | (value & 0x7f));
    }
    *at++ = (char)value;
    if (field.len > 0) {
        memcpy(at, field.ptr, field.len);
    }
    return at + field.len;
}

Str frames_pack(const Frame *frames, size_t count, Arena *arena)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        const BusOut *out = &frames[i].out;
        size += 1 + field_size(str_from(out->subject)) + field_size(out->event_id) +
                field_size(out->traceparent) + field_size(out->payload);
    }
    char *bytes = arena_alloc(arena, size);
    char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        const BusOut *out = &frames[i].out;
        *at++ = (char)frames[i].kind;
        at = put_field(at, str_from(out->subject));
        at = put_field(at, out->event_id);
        at = put_field(at, out->traceparent);
        at = put_field(at, out->payload);
    }
    assert(at == bytes + size);
    return str_of(bytes, size);
}

Str frames_compress(Str packed, Arena *arena)
{
    static ZSTD_CCtx *context; // of the process, used by its one loop thread
    if (context == NULL) {
        context = ZSTD_createCCtx();
        assert(context != NULL);
    }
    size_t room = ZSTD_compressBound(packed.len);
    char *bytes = arena_alloc(arena, room);
    size_t size = ZSTD_compressCCtx(context, bytes, room, packed.ptr, packed.len, ZSTD_LEVEL);
    assert(!ZSTD_isError(size)); // it had room for the worst case
    return str_of(bytes, size);
}

// What all zstd frames state together; SIZE_MAX: one is cut off, states nothing, or it is too much.
static size_t plain_size(Str rest)
{
    size_t total = 0;
    while (rest.len > 0) {
        size_t size = ZSTD_findFrameCompressedSize(rest.ptr, rest.len);
        unsigned long long plain = ZSTD_getFrameContentSize(rest.ptr, rest.len);
        // Its two errors are the greatest numbers there are.
        if (ZSTD_isError(size) || plain > FRAMES_BYTES_MAX - total) {
            return SIZE_MAX;
        }
        total += (size_t)plain;
        rest = str_slice(rest, size, rest.len);
    }
    return total;
}

static bool decompress(Str bytes, Arena *arena, Str *ret, Error *err)
{
    size_t size = plain_size(bytes);
    char *plain = size == SIZE_MAX ? NULL : arena_alloc(arena, size + 1);
    if (plain == NULL || ZSTD_decompress(plain, size, bytes.ptr, bytes.len) != size) {
        return error_set(err, ERROR_PERMANENT, "accept row does not decompress");
    }
    *ret = str_of(plain, size);
    return true;
}

// false: the bytes end inside the field.
static bool take_field(Str *rest, Str *ret_field)
{
    size_t len = 0;
    for (size_t i = 0; i < rest->len && i < VARINT_MAX - 1; i++) {
        unsigned char byte = (unsigned char)rest->ptr[i];
        len |= (size_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = str_slice(*rest, i + 1, rest->len);
            if (len > rest->len) {
                return false;
            }
            *ret_field = str_slice(*rest, 0, len);
            *rest = str_slice(*rest, len, rest->len);
            return true;
        }
    }
    return false;
}

static bool take_frame(Str *rest, Arena *arena, Frame *ret, Error *err)
{
    FrameKind kind = (FrameKind)(unsigned char)rest->ptr[0];
    *rest = str_slice(*rest, 1, rest->len);
    Str subject;
    BusOut out = {0};
    if (kind < FRAME_REQUEST || kind > FRAME_STATUS || !take_field(rest, &subject) ||
        !take_field(rest, &out.event_id) || !take_field(rest, &out.traceparent) ||
        !take_field(rest, &out.payload)) {
        return error_set(err, ERROR_PERMANENT, "accept row has an unreadable frame");
    }
    if (kind == FRAME_STATUS) {
        const Stentor__V1__NotificationStatus *status =
            (const Stentor__V1__NotificationStatus *)event_unpack(
                &stentor__v1__notification_status__descriptor, out.payload, arena, err);
        if (status == NULL || !status_event(status, out.traceparent, arena, &out, err)) {
            return false;
        }
    } else {
        out.subject = arena_cstr(arena, subject);
    }
    *ret = (Frame){.kind = kind, .out = out};
    return true;
}

// Frames are counted before any is made, so that the array has its size.
static bool count_frames(Str rest, size_t *ret_count)
{
    size_t count = 0;
    while (rest.len > 0) {
        rest = str_slice(rest, 1, rest.len);
        Str field;
        for (int i = 0; i < 4; i++) {
            if (!take_field(&rest, &field)) {
                return false;
            }
        }
        count++;
    }
    *ret_count = count;
    return count <= FRAMES_MAX;
}

bool frames_unpack(Str bytes, Arena *arena, Frame **ret_frames, size_t *ret_count, Error *err)
{
    bool compressed = str_starts(bytes, FRAMES_HEAD_ZSTD);
    if (!compressed && !str_starts(bytes, FRAMES_HEAD)) {
        return error_set(
            err, ERROR_PERMANENT, "accept row is in no frame version up to %d",
            FRAMES_HEAD_ZSTD.ptr[0]);
    }
    Str rest = str_slice(bytes, FRAMES_HEAD.len, bytes.len);
    if (compressed && !decompress(rest, arena, &rest, err)) {
        return false;
    }
    size_t count = 0;
    if (!count_frames(rest, &count)) {
        return error_set(err, ERROR_PERMANENT, "accept row has frames that are cut off");
    }
    Frame *frames = arena_array(arena, count, sizeof *frames);
    for (size_t i = 0; i < count; i++) {
        if (!take_frame(&rest, arena, &frames[i], err)) {
            return false;
        }
    }
    *ret_frames = frames;
    *ret_count = count;
    return true;
}
