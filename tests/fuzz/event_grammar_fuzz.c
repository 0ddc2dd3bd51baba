// SPDX-License-Identifier: Apache-2.0
// links: stentor_render stentor_codec
// Messages of every type of proto/stentor/v1, built field by field from their descriptors, some
// with a fault of the wire. Law: a sound one is read, and packs and unpacks to itself; of a faulty
// one the reason is printed; a template version that can be read compiles or says why not.
#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/version.h"
#include "tests/all_messages.h" // made by tests/CMakeLists.txt: `all_messages`
#include "tests/fuzz/choices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NESTING_MAX = 5, REPEATS_MAX = 4, MESSAGE_MAX = 64 * 1024 };

typedef struct Making {
    Choices choices;
    bool sound;
} Making;

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void put_varint(Buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        buf_char(out, (char)(value | 0x80));
    }
    buf_char(out, (char)value);
}

static unsigned wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 2;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 1;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 5;
    default:
        return 0;
    }
}

static void put_sized(Buf *out, Str bytes)
{
    put_varint(out, bytes.len);
    buf_str(out, bytes);
}

static void put_text(Making *making, Buf *out)
{
    static const char *const texts[] = {
        "",
        "acme",
        "1.0.0",
        "en-US",
        "{\"a\":1}",
        "a@example.com",
        "email",
        "\xc3\xbc",
        "{{#if a}}x{{/if}}",
        "{{number n}}",
        "<a href='{{u}}'>",
        "{{> p}}",
        "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    };
    if (choose(&making->choices, 16) == 1) {
        put_sized(out, STR("bad \xff"));
        making->sound = false;
        return;
    }
    put_sized(out, CHOOSE_TEXT(&making->choices, texts));
}

static void put_message(
    Making *making, const ProtobufCMessageDescriptor *type, int nesting, Buf *out);

static void put_value(Making *making, const ProtobufCFieldDescriptor *field, int nesting, Buf *out)
{
    uint64_t number = 0;
    Buf inner;
    switch (wire_type(field->type)) {
    case 0:
        put_varint(out, choose_number(&making->choices));
        return;
    case 1:
        number = choose_number(&making->choices);
        buf_append(out, &number, 8);
        return;
    case 5:
        number = choose_number(&making->choices);
        buf_append(out, &number, 4);
        return;
    default:
        break;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        put_text(making, out);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        put_sized(out, choose_bytes(&making->choices, 40));
    } else {
        buf_init(&inner, MESSAGE_MAX);
        if (nesting > 0) {
            put_message(making, field->descriptor, nesting - 1, &inner);
        }
        put_sized(out, buf_view(&inner));
        buf_done(&inner);
    }
}

static void put_fault(Making *making, const ProtobufCFieldDescriptor *field, Buf *out)
{
    making->sound = false;
    switch (choose(&making->choices, 4)) {
    case 0: // a group, which proto3 has not
        put_varint(out, (uint64_t)field->id << 3 | 3);
        break;
    case 1: // longer than what is left
        put_varint(out, (uint64_t)field->id << 3 | 2);
        put_varint(out, UINT32_MAX);
        break;
    case 2: // field number 0
        put_varint(out, 0);
        buf_char(out, 0);
        break;
    default: // a number without an end
        put_varint(out, (uint64_t)field->id << 3);
        buf_append(out, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
        break;
    }
}

static void put_field(Making *making, const ProtobufCFieldDescriptor *field, int nesting, Buf *out)
{
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    uint32_t times = repeated ? 1 + choose(&making->choices, REPEATS_MAX) : 1;
    for (; times > 0; times--) {
        put_varint(out, (uint64_t)field->id << 3 | wire_type(field->type));
        put_value(making, field, nesting, out);
    }
}

static void put_message(
    Making *making, const ProtobufCMessageDescriptor *type, int nesting, Buf *out)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        switch (choose(&making->choices, 24)) {
        case 0:
        case 1:
            break;
        case 2:
            put_fault(making, &type->fields[i], out);
            break;
        case 3: // one of a later version
            put_varint(out, UINT64_C(19000) << 3 | 2);
            put_sized(out, choose_bytes(&making->choices, 10));
            break;
        case 4: // twice: the last counts, messages are merged
            put_field(making, &type->fields[i], nesting, out);
            // fall through
        default:
            put_field(making, &type->fields[i], nesting, out);
            break;
        }
    }
}

static void check(const ProtobufCMessageDescriptor *type, Str bytes, bool sound, Arena *arena)
{
    Error err = {0};
    Str packed = STR_EMPTY;
    Str again = STR_EMPTY;
    ProtobufCMessage *message = event_unpack(type, bytes, arena, &err);
    if (message == NULL) {
        require(!sound && err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        return;
    }
    require(event_pack(message, arena, &packed, &err));
    message = event_unpack(type, packed, arena, &err);
    require(message != NULL && event_pack(message, arena, &again, &err) && str_eq(packed, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Making making = {{data, data + size}, true};
    const ProtobufCMessageDescriptor *type =
        all_messages[choose(&making.choices, sizeof all_messages / sizeof *all_messages)];
    Buf bytes;
    Arena *arena = arena_new(0);
    buf_init(&bytes, MESSAGE_MAX);
    put_message(&making, type, NESTING_MAX, &bytes);
    if (!bytes.full) {
        check(type, buf_view(&bytes), making.sound, arena);
    }
    if (type == &stentor__v1__template_version__descriptor) {
        CompiledVersion *version = version_compile(buf_view(&bytes));
        require(version->broken.kind != ERROR_NONE || version->locale_count > 0);
        version_free(version);
    }
    buf_done(&bytes);
    arena_free(arena);
    return 0;
}
