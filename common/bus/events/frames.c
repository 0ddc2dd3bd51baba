// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/frames.h"

#include <assert.h>
#include <string.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"

enum { VARINT_MAX = 10 };

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
    if (!str_starts(bytes, FRAMES_HEAD)) {
        return error_set(
            err, ERROR_PERMANENT, "accept row is not in frame version %d", FRAMES_HEAD.ptr[0]);
    }
    Str rest = str_slice(bytes, FRAMES_HEAD.len, bytes.len);
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
