// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/guard/quarantine.h"

#include "common/bus/consume/dead_letter.h"
#include "common/bus/events/status_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/status.h"

// ---- the frames of a protobuf message ----

enum { WIRE_NUMBER = 0, WIRE_8_BYTES = 1, WIRE_BYTES = 2, WIRE_4_BYTES = 5, VARINT_MAX = 10 };

typedef struct Frame {
    uint64_t field;
    uint64_t number; // WIRE_NUMBER
    Str bytes;       // WIRE_BYTES
} Frame;

static bool take_varint(Str *rest, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < VARINT_MAX && i < rest->len; i++) {
        uint64_t byte = (uint8_t)rest->ptr[i];
        *ret |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = str_slice(*rest, i + 1, rest->len);
            return true;
        }
    }
    return false;
}

static bool take_bytes(Str *rest, uint64_t len, Str *ret)
{
    if (len > rest->len) {
        return false;
    }
    *ret = str_slice(*rest, 0, (size_t)len);
    *rest = str_slice(*rest, (size_t)len, rest->len);
    return true;
}

static bool take_frame(Str *rest, Frame *ret)
{
    uint64_t key, len;
    if (!take_varint(rest, &key)) {
        return false;
    }
    *ret = (Frame){.field = key >> 3};
    switch (key & 7) {
    case WIRE_NUMBER:
        return take_varint(rest, &ret->number);
    case WIRE_BYTES:
        return take_varint(rest, &len) && take_bytes(rest, len, &ret->bytes);
    case WIRE_8_BYTES:
        return take_bytes(rest, 8, &ret->bytes);
    case WIRE_4_BYTES:
        return take_bytes(rest, 4, &ret->bytes);
    default:
        return false;
    }
}

// The last one counts, as for every reader of protobuf. false: the frames are not whole.
static bool find_frame(Str message, uint64_t field, Frame *ret)
{
    Frame frame;
    *ret = (Frame){.field = field};
    while (message.len > 0) {
        if (!take_frame(&message, &frame)) {
            return false;
        }
        *ret = frame.field == field ? frame : *ret;
    }
    return true;
}

// ---- whose it is ----

// Fields of proto/stentor/v1; Meta and Channel stand first in both kinds of work.
enum {
    META_TENANT = 2,
    META_NOTIFICATION = 3,
    WORK_META = 1,
    WORK_CHANNEL = 2,
    REQUEST_RESENDS = 23,
    RENDERED_RESENDS = 20,
    DEFERRED_REQUEST = 4,
    DEFERRED_RENDERED = 5,
};

static bool read_work(Str work, uint64_t resends_field, Str tenant, PoisonWork *ret)
{
    Frame meta, channel, resends, named, id;
    if (!find_frame(work, WORK_META, &meta) || !find_frame(work, WORK_CHANNEL, &channel) ||
        !find_frame(work, resends_field, &resends) ||
        !find_frame(meta.bytes, META_TENANT, &named) ||
        !find_frame(meta.bytes, META_NOTIFICATION, &id)) {
        return false;
    }
    if (!str_eq(named.bytes, tenant) || !id_parse(id.bytes, "ntf_", NULL) ||
        channel.number >= CHANNEL_COUNT || channel_name((Channel)channel.number)[0] == '\0' ||
        resends.number > UINT32_MAX) {
        return false;
    }
    ret->channel = (Channel)channel.number;
    ret->resends = (uint32_t)resends.number;
    return str_to_c(id.bytes, ret->notification_id, sizeof ret->notification_id);
}

bool poison_work(const char *stream, Str payload, Str tenant, PoisonWork *ret)
{
    Frame request, rendered;
    Str name = str_from(stream);
    if (str_starts(name, STR("REQUEST_"))) {
        return read_work(payload, REQUEST_RESENDS, tenant, ret);
    }
    if (str_starts(name, STR("RENDERED_"))) {
        return read_work(payload, RENDERED_RESENDS, tenant, ret);
    }
    if (!str_eq(name, STR("DEFERRED")) || !find_frame(payload, DEFERRED_REQUEST, &request) ||
        !find_frame(payload, DEFERRED_RENDERED, &rendered)) {
        return false;
    }
    return rendered.bytes.len > 0 ? read_work(rendered.bytes, RENDERED_RESENDS, tenant, ret)
                                  : read_work(request.bytes, REQUEST_RESENDS, tenant, ret);
}

// ---- what is left ----

static bool pack_end(
    const BusMessage *message, const PoisonWork *work, const char *reason, int64_t now_us,
    Arena *arena, BusOut *ret)
{
    Error err;
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *place =
        arena_printf(arena, "poison/%s/%s", message->stream, dead_letter_place(message, arena));
    event_id_derive("status", str_from(work->notification_id), str_from(place), id);
    MetaSpec head = {
        .event_id = id,
        .tenant = arena_cstr(arena, subject_last(message->subject)),
        .notification_id = work->notification_id,
        .causation_id =
            arena_cstr(arena, str_is_utf8(message->event_id) ? message->event_id : STR_EMPTY),
        .at_us = now_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    StatusSpec spec = {&meta, STATUS_FAILED, "poison_message", reason};
    Stentor__V1__NotificationStatus status = status_make(&spec, work->channel);
    status.resends = work->resends;
    return status_event(&status, message->traceparent, arena, ret, &err);
}

bool quarantine_pack(
    const BusMessage *message, const char *stage, uint32_t deaths, int64_t now_us, Arena *arena,
    Quarantine *ret)
{
    PoisonWork work;
    char *reason = arena_printf(
        arena,
        "poison message: %u processes in a row died or hung while they handled it; its payload was "
        "not read",
        deaths);
    bool known =
        poison_work(message->stream, message->payload, subject_last(message->subject), &work);
    Str notification = known ? str_from(work.notification_id) : STR("unknown");
    *ret = (Quarantine){0};
    ret->has_end = known && pack_end(message, &work, reason, now_us, arena, &ret->end);
    DeadLetterSpec letter = {
        .stage = stage,
        .reason = reason,
        .reason_code = ret->has_end ? STR("poison_message") : STR_EMPTY,
    };
    return dead_letter_pack_unread(
        message, &letter, ret->has_end ? notification : STR("unknown"), arena, &ret->letter);
}
