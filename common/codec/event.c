// SPDX-License-Identifier: Apache-2.0
#include "common/codec/event.h"

#include <assert.h>
#include <string.h>

enum {
    // What an event may grow to in memory. Two bytes on the wire can make a struct of a hundred (an
    // empty message in a
    // repeated field), so the size on the wire does not bound it.
    EVENT_MEMORY_MAX = 16 * 1024 * 1024,
    NESTING_MAX = 16, // our messages nest 3 deep
};

typedef struct Budget {
    Arena *arena;
    size_t left;
} Budget;

static void *alloc(void *data, size_t size)
{
    Budget *budget = data;
    if (size > budget->left) {
        return NULL; // protobuf-c gives up the message
    }
    budget->left -= size;
    return arena_alloc(budget->arena, size);
}

static void release(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

// What is left to read of a message. Bare pointers, because each event's every field passes here.
typedef struct Wire {
    const uint8_t *at;
    const uint8_t *end;
} Wire;

static bool take_varint(Wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; wire->at < wire->end && shift < 70; shift += 7) {
        uint8_t byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool skip(Wire *wire, uint64_t count)
{
    if (count > (uint64_t)(wire->end - wire->at)) {
        return false;
    }
    wire->at += count;
    return true;
}

typedef struct WireField {
    uint32_t number;
    bool has_bytes;
    Str bytes;
} WireField;

static bool take_bytes(Wire *wire, WireField *field)
{
    uint64_t length;
    if (!take_varint(wire, &length)) {
        return false;
    }
    field->has_bytes = true;
    field->bytes = (Str){(const char *)wire->at, (size_t)length};
    return skip(wire, length);
}

static bool take_field(Wire *wire, WireField *field)
{
    uint64_t tag;
    // protobuf-c lets field number 0 pass when it is written in two bytes.
    if (!take_varint(wire, &tag) || (uint32_t)(tag >> 3) == 0) {
        return false;
    }
    field->number = (uint32_t)(tag >> 3);
    field->has_bytes = false;
    uint64_t ignored;
    switch (tag & 7u) {
    case 0:
        return take_varint(wire, &ignored);
    case 1:
        return skip(wire, 8);
    case 2:
        return take_bytes(wire, field);
    case 5:
        return skip(wire, 4);
    default:
        return false; // groups, which proto3 does not have
    }
}

static const ProtobufCFieldDescriptor *find_field(
    const ProtobufCMessageDescriptor *type, uint32_t number)
{
    // Our numbers run from 1 without a gap nearly everywhere, so the place is the number.
    if (number <= type->n_fields && type->fields[number - 1].id == number) {
        return &type->fields[number - 1];
    }
    return protobuf_c_message_descriptor_get_field(type, number);
}

static const char *find_bad_field(const ProtobufCMessageDescriptor *type, Str bytes, int nesting);

static const char *check_field(const ProtobufCFieldDescriptor *known, Str bytes, int nesting)
{
    if (known->type == PROTOBUF_C_TYPE_STRING) {
        return str_is_utf8(bytes) ? NULL : known->name;
    }
    if (known->type != PROTOBUF_C_TYPE_MESSAGE) {
        return NULL;
    }
    return nesting == 0 ? known->name : find_bad_field(known->descriptor, bytes, nesting - 1);
}

// Walks the wire, not the message: in the message a string ends at its first NUL, so that "a\0b"
// would look sound. Returns the name of the first string field that is not UTF-8, "" when the wire
// itself is not sound, NULL: all is well.
static const char *find_bad_field(const ProtobufCMessageDescriptor *type, Str bytes, int nesting)
{
    Wire wire = {(const uint8_t *)bytes.ptr, (const uint8_t *)bytes.ptr + bytes.len};
    const char *bad = NULL;
    while (bad == NULL && wire.at < wire.end) {
        WireField field;
        if (!take_field(&wire, &field)) {
            return "";
        }
        const ProtobufCFieldDescriptor *known =
            field.has_bytes ? find_field(type, field.number) : NULL;
        bad = known == NULL ? NULL : check_field(known, field.bytes, nesting);
    }
    return bad;
}

ProtobufCMessage *event_unpack(
    const ProtobufCMessageDescriptor *type, Str bytes, Arena *arena, Error *err)
{
    if (bytes.len > EVENT_BYTES_MAX) {
        error_set(
            err, ERROR_PERMANENT, "%s of %zu bytes is above %d", type->name, bytes.len,
            (int)EVENT_BYTES_MAX);
        return NULL;
    }
    Budget budget = {arena, EVENT_MEMORY_MAX};
    ProtobufCAllocator allocator = {alloc, release, &budget};
    const uint8_t *data = (const uint8_t *)(bytes.len == 0 ? "" : bytes.ptr);
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.len, data);
    if (message == NULL) {
        error_set(err, ERROR_PERMANENT, "not a %s", type->name);
        return NULL;
    }
    const char *bad = find_bad_field(type, bytes, NESTING_MAX);
    if (bad != NULL && bad[0] == '\0') {
        error_set(err, ERROR_PERMANENT, "not a %s", type->name);
        return NULL;
    }
    if (bad != NULL) {
        error_set(err, ERROR_PERMANENT, "not a %s: field '%s' is not UTF-8", type->name, bad);
        return NULL;
    }
    return message;
}

bool event_pack(const ProtobufCMessage *message, Arena *arena, Str *ret_bytes, Error *err)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > EVENT_BYTES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "%s of %zu bytes is above %d", message->descriptor->name, size,
            (int)EVENT_BYTES_MAX);
    }
    uint8_t *bytes = arena_alloc(arena, size);
    size_t written = protobuf_c_message_pack(message, bytes);
    assert(written == size);
    *ret_bytes = str_of(bytes, written);
    return true;
}
