// SPDX-License-Identifier: Apache-2.0
#include "common/segment/segment_headers.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/segment/segment_bytes.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, META_FIELD = 1 };

typedef struct Meta {
    Str event_id, tenant, notification_id;
    int64_t occurred_at_us;
} Meta;

// ---- an event's Meta, as protobuf has it on the wire ----

typedef struct Field {
    uint64_t number;
    uint64_t value; // of a varint
    Str bytes;      // of bytes
} Field;

static bool take_field(Str *rest, Field *ret)
{
    uint64_t key;
    *ret = (Field){.bytes = STR_EMPTY};
    if (!take_varint(rest, &key)) {
        return false;
    }
    ret->number = key >> 3;
    size_t fixed = (key & 7) == WIRE_64 ? 8 : 4;
    switch (key & 7) {
    case WIRE_VARINT:
        return take_varint(rest, &ret->value);
    case WIRE_BYTES:
        return take_bytes(rest, SEGMENT_PAYLOAD_MAX, &ret->bytes);
    case WIRE_64:
    case WIRE_32:
        if (rest->len < fixed) {
            return false;
        }
        *rest = str_slice(*rest, fixed, rest->len);
        return true;
    default:
        return false;
    }
}

// Every event begins with it.
static bool read_meta(Str payload, Meta *ret)
{
    Field field;
    *ret = (Meta){STR_EMPTY, STR_EMPTY, STR_EMPTY, 0};
    if (!take_field(&payload, &field) || field.number != META_FIELD) {
        return false;
    }
    Str meta = field.bytes;
    while (meta.len > 0) {
        if (!take_field(&meta, &field)) {
            return false;
        }
        switch (field.number) {
        case 1:
            ret->event_id = field.bytes;
            break;
        case 2:
            ret->tenant = field.bytes;
            break;
        case 3:
            ret->notification_id = field.bytes;
            break;
        case 6:
            ret->occurred_at_us = (int64_t)field.value;
            break;
        default:
            break;
        }
    }
    return true;
}

Str segment_notification_id(Str payload)
{
    Meta meta;
    return read_meta(payload, &meta) ? meta.notification_id : STR_EMPTY;
}

Str segment_tenant(Str payload)
{
    Meta meta;
    return read_meta(payload, &meta) ? meta.tenant : STR_EMPTY;
}

// ---- what follows ----

static Str last_token(Str subject)
{
    Str token = STR_EMPTY;
    while (str_split(&subject, '.', &token)) {
    }
    return token;
}

// What common/bus/events/status_event.c makes.
static size_t derive_status(
    const Meta *meta, Str subject, SegmentHeaderSpace *space, SegmentPair *out)
{
    char *text = space->text;
    size_t room = sizeof space->text;
    Str status = last_token(subject);
    int source = snprintf(text, room, "/stentor/" STR_FMT, STR_ARG(meta->tenant));
    int type = snprintf(
        text + source, room - (size_t)source, "stentor.notification." STR_FMT ".v1",
        STR_ARG(status));
    char *time = text + source + type + 1;
    clock_format(meta->occurred_at_us, time);
    size_t n = 0;
    out[n++] = (SegmentPair){STR("ce-specversion"), STR("1.0")};
    out[n++] = (SegmentPair){STR("ce-id"), meta->event_id};
    out[n++] = (SegmentPair){STR("ce-source"), str_of(text, (size_t)source)};
    out[n++] = (SegmentPair){STR("ce-type"), str_of(text + source, (size_t)type)};
    out[n++] = (SegmentPair){STR("ce-time"), str_from(time)};
    out[n++] = (SegmentPair){STR("ce-subject"), meta->notification_id};
    out[n++] = (SegmentPair){STR("content-type"), STR("application/protobuf")};
    return n;
}

// At most 8 pairs.
static size_t derive(Str subject, Str payload, SegmentHeaderSpace *space, SegmentPair *out)
{
    enum { PART_MAX = 96 };
    Meta meta;
    if (!read_meta(payload, &meta) || meta.event_id.len == 0) {
        return 0;
    }
    out[0] = (SegmentPair){STR("Nats-Msg-Id"), meta.event_id};
    bool is_status = str_starts(subject, STR("ntf.status.")) && meta.tenant.len <= PART_MAX &&
                     last_token(subject).len <= PART_MAX;
    return 1 + (is_status ? derive_status(&meta, subject, space, out + 1) : 0);
}

// ---- pairs ----

Str segment_headers_get(const SegmentPair *pairs, size_t count, Str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(pairs[i].name, name)) {
            return pairs[i].value;
        }
    }
    return STR_EMPTY;
}

static bool has(const SegmentPair *pairs, size_t count, const SegmentPair *wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(pairs[i].name, wanted->name) && str_eq(pairs[i].value, wanted->value)) {
            return true;
        }
    }
    return false;
}

static bool has_all(
    const SegmentPair *pairs, size_t count, const SegmentPair *wanted, size_t wanted_count)
{
    for (size_t i = 0; i < wanted_count; i++) {
        if (!has(pairs, count, &wanted[i])) {
            return false;
        }
    }
    return true;
}

static bool pack_pair(const SegmentPair *pair, SegmentHeaderSpace *space, size_t *len)
{
    if (pair->name.len + pair->value.len > sizeof space->packed - *len ||
        sizeof space->packed - *len - pair->name.len - pair->value.len < (size_t)(2 * VARINT_MAX)) {
        return false;
    }
    *len += put_bytes(space->packed + *len, pair->name);
    *len += put_bytes(space->packed + *len, pair->value);
    return true;
}

bool segment_headers_pack(
    SegmentRecord *record, const SegmentPair *pairs, size_t count, SegmentHeaderSpace *space,
    Error *err)
{
    SegmentPair derived[8];
    size_t known = derive(record->subject, record->payload, space, derived);
    bool follows = known > 0 && has_all(pairs, count, derived, known);
    size_t len = 0, packed = 0;
    for (size_t i = 0; i < count; i++) {
        if (follows && has(derived, known, &pairs[i])) {
            continue;
        }
        if (++packed + known > SEGMENT_PAIRS_MAX || !pack_pair(&pairs[i], space, &len)) {
            return error_set(
                err, ERROR_PERMANENT, "message %llu has too many headers for a segment",
                (unsigned long long)record->sequence);
        }
    }
    record->headers = str_of(space->packed, len);
    record->header_form = !follows     ? SEGMENT_HEADERS_OWN
                          : packed > 0 ? SEGMENT_HEADERS_MORE
                                       : SEGMENT_HEADERS_DERIVED;
    return true;
}

bool segment_headers_unpack(
    const SegmentRecord *record, SegmentHeaderSpace *space, const SegmentPair **ret,
    size_t *ret_count)
{
    size_t count = 0;
    if (record->header_form != SEGMENT_HEADERS_OWN) {
        count = derive(record->subject, record->payload, space, space->pairs);
    }
    Str rest = record->headers;
    while (rest.len > 0) {
        Str name, value;
        if (count == SEGMENT_PAIRS_MAX || !take_bytes(&rest, SEGMENT_PAIRS_BYTES, &name) ||
            !take_bytes(&rest, SEGMENT_PAIRS_BYTES, &value)) {
            return false;
        }
        space->pairs[count++] = (SegmentPair){name, value};
    }
    *ret = space->pairs;
    *ret_count = count;
    return true;
}
