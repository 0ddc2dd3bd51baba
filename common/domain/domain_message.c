// SPDX-License-Identifier: Apache-2.0
#include "common/domain/domain_message.h"

#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/names/event_type.h"
#include "stentor/v1/order.pb-c.h"

static json_t *object_of(const ProtobufCMessage *message, Arena *arena);

const ProtobufCMessageDescriptor *domain_message_type(Str name)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &stentor__v1__place_order__descriptor,        &stentor__v1__complete_order__descriptor,
        &stentor__v1__cancel_order__descriptor,       &stentor__v1__clean_up_sent_email__descriptor,
        &stentor__v1__resend_error_email__descriptor, &stentor__v1__user_checked_out__descriptor,
        &stentor__v1__status_changed__descriptor,     &stentor__v1__place_order_timeout__descriptor,
        &stentor__v1__clean_up_orders__descriptor,    &stentor__v1__order_failed__descriptor,
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (str_eq(name, str_from(types[i]->name)) ||
            str_eq(event_type_plain(name), str_from(types[i]->short_name))) {
            return types[i];
        }
    }
    return NULL;
}

// ---- values ----

// The fields' bytes stand in a C struct at offsets that the descriptor tells: copied out, never
// cast, so that no alignment or aliasing is assumed.
static int64_t read_i64(const void *at)
{
    int64_t value = 0;
    memcpy(&value, at, sizeof value);
    return value;
}

static int32_t read_i32(const void *at)
{
    int32_t value = 0;
    memcpy(&value, at, sizeof value);
    return value;
}

static const void *read_pointer(const void *at)
{
    const void *value = NULL;
    memcpy(&value, at, sizeof value);
    return value;
}

static json_t *real_of(double value)
{
    json_t *number = json_real(value);
    return number != NULL ? number : json_null(); // infinite or not a number
}

static json_t *enum_of(const ProtobufCEnumDescriptor *type, int32_t value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);
    return known != NULL ? json_string(known->name) : json_integer(value);
}

static json_t *bytes_of(const void *at, Arena *arena)
{
    ProtobufCBinaryData data;
    memcpy(&data, at, sizeof data);
    char *text = arena_alloc(arena, 4 * ((data.len + 2) / 3) + 1);
    base64url_encode(data.data, data.len, text);
    return json_string(text);
}

static json_t *number_of(const ProtobufCFieldDescriptor *field, const void *at)
{
    double real = 0;
    float small = 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(read_i32(at));
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer((uint32_t)read_i32(at));
    case PROTOBUF_C_TYPE_FLOAT:
        memcpy(&small, at, sizeof small);
        return real_of((double)small);
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&real, at, sizeof real);
        return real_of(real);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        // JSON's own numbers end there too, for most that read them.
        return read_i64(at) < 0 ? real_of((double)(uint64_t)read_i64(at))
                                : json_integer(read_i64(at));
    default:
        return json_integer(read_i64(at));
    }
}

static json_t *value_of(const ProtobufCFieldDescriptor *field, const void *at, Arena *arena)
{
    const void *pointer = NULL;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        pointer = read_pointer(at);
        return json_string(pointer == NULL ? "" : pointer);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(read_i32(at) != 0);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_of(field->descriptor, read_i32(at));
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_of(at, arena);
    case PROTOBUF_C_TYPE_MESSAGE:
        pointer = read_pointer(at);
        return pointer == NULL ? json_null() : object_of(pointer, arena);
    default:
        return number_of(field, at);
    }
}

static size_t width_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

static json_t *array_of(
    const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, Arena *arena)
{
    const char *base = (const char *)message;
    size_t count = 0;
    memcpy(&count, base + field->quantifier_offset, sizeof count);
    const char *items = read_pointer(base + field->offset);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(
            array, value_of(field, items + i * width_of(field->type), arena));
    }
    return array;
}

// A member of a oneof that is not the one that was set.
static bool is_absent(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) {
        return false;
    }
    int32_t which = read_i32((const char *)message + field->quantifier_offset);
    return (uint32_t)which != field->id;
}

// ---- messages ----

static void add_amount(json_t *object, const char *name, const json_t *value)
{
    Str ending = STR("_micros");
    Str text = str_from(name);
    if (!json_is_integer(value) || text.len <= ending.len || !str_ends(text, ending)) {
        return;
    }
    size_t len = text.len - ending.len;
    if (json_object_getn(object, name, len) == NULL) {
        double amount = (double)json_integer_value(value) / 1e6;
        (void)json_object_setn_new(object, name, len, json_real(amount));
    }
}

static json_t *object_of(const ProtobufCMessage *message, Arena *arena)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    json_t *object = json_object();
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            (void)json_object_set_new(object, field->name, array_of(message, field, arena));
        } else if (!is_absent(message, field)) {
            const char *at = (const char *)message + field->offset;
            (void)json_object_set_new(object, field->name, value_of(field, at, arena));
        }
    }
    for (unsigned i = 0; i < type->n_fields; i++) { // after all, for a real field of that name wins
        const char *name = type->fields[i].name;
        add_amount(object, name, json_object_get(object, name));
    }
    return object;
}

json_t *domain_message_json(
    const ProtobufCMessageDescriptor *type, Str bytes, Arena *arena, Error *err)
{
    const ProtobufCMessage *message = event_unpack(type, bytes, arena, err);
    return message == NULL ? NULL : object_of(message, arena);
}
