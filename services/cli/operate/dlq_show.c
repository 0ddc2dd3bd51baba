// SPDX-License-Identifier: Apache-2.0
#include "services/cli/operate/dlq_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/model/enums.h"

static const int64_t time_max_us = INT64_C(253402300800000000); // 10000-01-01

// ---- an event by its descriptor ----

static json_t *hex_json(Str bytes)
{
    char hex[2 * LETTER_BYTES_SHOWN + 1];
    size_t shown = bytes.len < LETTER_BYTES_SHOWN ? bytes.len : LETTER_BYTES_SHOWN;
    hex_encode(bytes.ptr, shown, hex);
    return json_sprintf("%s%s", hex, shown < bytes.len ? "..." : "");
}

static json_t *unsigned_json(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_sprintf("%" PRIu64, value);
}

static json_t *enum_json(const ProtobufCFieldDescriptor *field, int value)
{
    const ProtobufCEnumValue *known =
        protobuf_c_enum_descriptor_get_value(field->descriptor, value);
    return known != NULL ? json_string(known->name) : json_integer(value);
}

static json_t *int64_json(const ProtobufCFieldDescriptor *field, int64_t value)
{
    char at[CLOCK_RFC3339_SIZE];
    if (field->type != PROTOBUF_C_TYPE_INT64 || !str_ends(str_from(field->name), STR("_us")) ||
        value <= 0 || value >= time_max_us) {
        return json_integer(value);
    }
    clock_format(value, at);
    return json_string(at);
}

// One value at `at`; NULL: it is not set.
static json_t *value_json(const ProtobufCFieldDescriptor *field, const void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return *(const int32_t *)at != 0 ? json_integer(*(const int32_t *)at) : NULL;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return *(const uint32_t *)at != 0 ? unsigned_json(*(const uint32_t *)at) : NULL;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return *(const int64_t *)at != 0 ? int64_json(field, *(const int64_t *)at) : NULL;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return *(const uint64_t *)at != 0 ? unsigned_json(*(const uint64_t *)at) : NULL;
    case PROTOBUF_C_TYPE_ENUM:
        return *(const int *)at != 0 ? enum_json(field, *(const int *)at) : NULL;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)at ? json_true() : NULL;
    case PROTOBUF_C_TYPE_FLOAT:
        return json_real((double)*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_real(*(const double *)at);
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)at;
        return text != NULL && text[0] != '\0' ? json_string(text) : NULL;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData data = *(const ProtobufCBinaryData *)at;
        return data.len > 0 ? hex_json(pb_bytes(data)) : NULL;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *message = *(const ProtobufCMessage *const *)at;
        return message == NULL                                           ? NULL
               : message->descriptor == &stentor__v1__sealed__descriptor ? json_string("sealed")
                                                                         : event_json(message);
    }
    }
    return NULL;
}

static json_t *repeated_json(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *event)
{
    size_t count = *(const size_t *)(const void *)((const char *)event + field->quantifier_offset);
    bool pointers = field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING;
    if (count == 0 || !pointers) { // no event repeats anything else
        return NULL;
    }
    const void *const *items =
        *(const void *const *const *)(const void *)((const char *)event + field->offset);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = value_json(field, &items[i]);
        json_array_append_new(all, item != NULL ? item : json_string(""));
    }
    return all;
}

static json_t *field_json(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *event)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(const void *)((const char *)event + field->quantifier_offset) !=
            field->id) {
        return NULL; // another case of the oneof
    }
    return field->label == PROTOBUF_C_LABEL_REPEATED
               ? repeated_json(field, event)
               : value_json(field, (const char *)event + field->offset);
}

json_t *event_json(const ProtobufCMessage *event)
{
    json_t *all = json_object();
    for (unsigned i = 0; i < event->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &event->descriptor->fields[i];
        json_t *value = field_json(field, event);
        if (value == NULL) {
            continue;
        }
        Str name = str_from(field->name);
        if (field->type == PROTOBUF_C_TYPE_INT64 && json_is_string(value)) {
            name = str_slice(name, 0, name.len - 3); // a time, without its unit
        }
        char key[64];
        json_object_set_new(all, str_to_c(name, key, sizeof key) ? key : field->name, value);
    }
    return all;
}

// ---- a letter as JSON ----

// Whatever it holds: a subject or a token may be no UTF-8.
static json_t *text_json(Str text, Arena *arena)
{
    return json_string(str_is_utf8(text) ? arena_cstr(arena, text) : "?");
}

static const char *reason_of(const Letter *letter)
{
    return letter->body != NULL ? letter->body->reason : letter->unreadable.text;
}

json_t *letter_row(const Letter *letter, int64_t now_us, Arena *arena)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(letter->stored_at_us, at);
    json_t *row = json_object();
    json_object_set_new(row, "sequence", unsigned_json(letter->sequence));
    json_object_set_new(row, "stored_at", json_string(at));
    json_object_set_new(row, "age_s", json_integer((now_us - letter->stored_at_us) / 1000000));
    json_object_set_new(row, "stage", text_json(letter->stage, arena));
    json_object_set_new(row, "tenant", text_json(letter->tenant, arena));
    json_object_set_new(row, "notification_id", json_string(letter->notification_id));
    json_object_set_new(row, "reason", text_json(str_from(reason_of(letter)), arena));
    json_object_set_new(
        row, "reason_code", json_string(letter->body != NULL ? letter->body->reason_code : ""));
    json_object_set_new(row, "attempts", unsigned_json(letter->attempts));
    json_object_set_new(row, "readable", json_boolean(letter->body != NULL));
    return row;
}

// A domain event in JSON as it is; what is no text as bytes.
static void set_payload(json_t *json, Str payload)
{
    json_t *event = json_loadb(payload.ptr, payload.len, JSON_REJECT_DUPLICATES, NULL);
    if (event != NULL) {
        json_object_set_new(json, "event", event);
    } else {
        json_object_set_new(json, "payload_hex", hex_json(payload));
    }
}

json_t *letter_whole(const Letter *letter, int64_t now_us, Arena *arena)
{
    json_t *json = letter_row(letter, now_us, arena);
    const Stentor__V1__DeadLetter *body = letter->body;
    if (body == NULL) {
        return json;
    }
    json_object_set_new(json, "event_id", json_string(body->meta->event_id));
    json_object_set_new(json, "causation_id", json_string(body->meta->causation_id));
    json_object_set_new(json, "stream", json_string(body->stream));
    json_object_set_new(json, "stream_sequence", unsigned_json(body->stream_sequence));
    json_object_set_new(json, "subject", json_string(body->subject));
    json_object_set_new(json, "deliveries", unsigned_json(body->deliveries));
    json_t *attempts = json_array();
    for (size_t i = 0; i < body->n_attempts; i++) {
        const Stentor__V1__Attempt *attempt = body->attempts[i];
        json_t *one = event_json(&attempt->base);
        json_object_set_new(one, "outcome", json_string(outcome_name((Outcome)attempt->outcome)));
        json_object_set_new(one, "number", unsigned_json(attempt->number));
        json_array_append_new(attempts, one);
    }
    json_object_set_new(json, "attempts", attempts);
    json_object_set_new(json, "payload_bytes", unsigned_json(body->payload.len));
    if (letter->event != NULL) {
        json_object_set_new(json, "event_type", json_string(letter->event->descriptor->name));
        json_object_set_new(json, "event", event_json(letter->event));
    } else if (letter->sealed != NULL) {
        json_object_set_new(json, "sealed", json_string(letter->sealed));
    } else {
        set_payload(json, pb_bytes(body->payload));
    }
    return json;
}

// ---- as text ----

const char *printable(const char *text, Arena *arena)
{
    char *clean = arena_cstr(arena, str_from(text));
    for (char *c = clean; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
    return clean;
}

static const char *age(int64_t age_us, Arena *arena)
{
    int64_t s = age_us > 0 ? age_us / 1000000 : 0;
    if (s < 60) {
        return arena_printf(arena, "%" PRId64 "s", s);
    }
    if (s < 3600) {
        return arena_printf(arena, "%" PRId64 "m", s / 60);
    }
    return s < 2 * 86400 ? arena_printf(arena, "%" PRId64 "h", s / 3600)
                         : arena_printf(arena, "%" PRId64 "d", s / 86400);
}

static const char *plain(Str text, Arena *arena)
{
    return printable(arena_cstr(arena, text), arena);
}

void letter_print_head(void)
{
    printf(
        "%8s  %4s  %-16s  %-12s  %-30s  %8s  %s\n", "SEQUENCE", "AGE", "STAGE", "TENANT",
        "NOTIFICATION", "ATTEMPTS", "REASON");
}

void letter_print_row(const Letter *letter, int64_t now_us, Arena *arena)
{
    const char *id = letter->notification_id;
    const char *attempts =
        letter->attempts > 0 ? arena_printf(arena, "%" PRIu32, letter->attempts) : "-";
    printf(
        "%8" PRIu64 "  %4s  %-16s  %-12s  %-30s  %8s  %s%s\n", letter->sequence,
        age(now_us - letter->stored_at_us, arena), plain(letter->stage, arena),
        plain(letter->tenant, arena), id[0] != '\0' ? id : "-", attempts,
        letter->body == NULL ? "(not a dead letter) " : "", printable(reason_of(letter), arena));
}

static void print_attempt(const Stentor__V1__Attempt *attempt, Arena *arena)
{
    char at[CLOCK_RFC3339_SIZE] = "";
    if (attempt->finished_at_us > 0 && attempt->finished_at_us < time_max_us) {
        clock_format(attempt->finished_at_us, at);
    }
    printf(
        "  attempt %-8" PRIu32 " %s  via %s: %s%s%s%s%s%s%s\n", attempt->number, at,
        printable(attempt->vendor, arena), outcome_name((Outcome)attempt->outcome),
        attempt->code[0] != '\0' ? ", " : "", printable(attempt->code, arena),
        attempt->enhanced_code[0] != '\0' ? " " : "", printable(attempt->enhanced_code, arena),
        attempt->text[0] != '\0' ? " " : "", printable(attempt->text, arena));
}

// A domain event in JSON. false: it is none.
static bool print_json_event(Str payload)
{
    json_t *event = json_loadb(payload.ptr, payload.len, 0, NULL);
    char *text = event != NULL ? json_dumps(event, JSON_INDENT(2)) : NULL;
    if (text != NULL) {
        printf("%s\n", text);
    }
    free(text);
    json_decref(event);
    return event != NULL;
}

static void print_event(const Letter *letter)
{
    const ProtobufCBinaryData payload = letter->body->payload;
    if (letter->event != NULL) {
        json_t *json = event_json(letter->event);
        char *text = json_dumps(json, JSON_INDENT(2));
        printf("%s:\n%s\n", letter->event->descriptor->name, text != NULL ? text : "");
        free(text);
        json_decref(json);
        return;
    }
    if (letter->sealed != NULL) {
        printf("sealed: %s\n", letter->sealed);
        return;
    }
    if (print_json_event(pb_bytes(payload))) {
        return;
    }
    char hex[2 * LETTER_BYTES_SHOWN + 1];
    size_t shown = payload.len < LETTER_BYTES_SHOWN ? payload.len : LETTER_BYTES_SHOWN;
    hex_encode(payload.data, shown, hex);
    printf(
        "%zu bytes that are not an event of its subject%s\n", payload.len,
        shown < payload.len ? "; the first 1,024:"
        : payload.len > 0   ? ":"
                            : "");
    for (size_t i = 0; i < 2 * shown; i += 64) {
        printf("  %.64s\n", hex + i);
    }
}

void letter_print_whole(const Letter *letter, int64_t now_us, Arena *arena)
{
    const Stentor__V1__DeadLetter *body = letter->body;
    char at[CLOCK_RFC3339_SIZE];
    clock_format(letter->stored_at_us, at);
    printf("letter %" PRIu64 " on %s\n", letter->sequence, plain(letter->subject, arena));
    printf("  %-16s %s (%s ago)\n", "stored", at, age(now_us - letter->stored_at_us, arena));
    printf("  %-16s %s\n", "reason", printable(reason_of(letter), arena));
    if (body == NULL) {
        printf("Its content cannot be read as a dead letter.\n");
        return;
    }
    if (letter->notification_id[0] != '\0') {
        printf("  %-16s %s\n", "notification", letter->notification_id);
    }
    printf(
        "  %-16s %s, sequence %" PRIu64 " of %s, delivered %" PRIu32 " times\n", "from",
        printable(body->subject, arena), body->stream_sequence, printable(body->stream, arena),
        body->deliveries);
    printf("  %-16s %s\n", "event id", printable(body->meta->event_id, arena));
    if (body->meta->causation_id[0] != '\0') {
        printf("  %-16s %s\n", "of event", printable(body->meta->causation_id, arena));
    }
    for (size_t i = 0; i < body->n_attempts; i++) {
        print_attempt(body->attempts[i], arena);
    }
    print_event(letter);
}
