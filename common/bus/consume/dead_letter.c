// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/dead_letter.h"

#include <string.h>

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/kinds.h"
#include "common/events/meta.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"

enum { LETTER_ROOM = 4096 };

// ---- read from the payload ----

static Str notification_of(const ProtobufCMessage *payload)
{
    const Stentor__V1__Meta *meta = payload == NULL ? NULL : event_meta(payload);
    Str id = meta == NULL ? STR_EMPTY : str_from(meta->notification_id);
    return id_parse(id, "ntf_", NULL) ? id : STR("unknown");
}

static void fill_attempts(
    Stentor__V1__DeadLetter *letter, const ProtobufCMessage *payload, Str last_attempt,
    Arena *arena)
{
    size_t count = 0;
    Stentor__V1__Attempt **earlier = NULL;
    if (payload != NULL && payload->descriptor == &stentor__v1__rendered__descriptor) {
        count = ((const Stentor__V1__Rendered *)payload)->n_attempts;
        earlier = ((const Stentor__V1__Rendered *)payload)->attempts;
    }
    letter->attempts = arena_array(arena, count + 1, sizeof *letter->attempts);
    for (size_t i = 0; i < count; i++) {
        letter->attempts[i] = earlier[i];
    }
    letter->n_attempts = count;
    if (last_attempt.len > 0) {
        letter->attempts[count] = (Stentor__V1__Attempt *)event_unpack(
            &stentor__v1__attempt__descriptor, last_attempt, arena, NULL);
        letter->n_attempts += letter->attempts[count] != NULL ? 1 : 0;
    }
}

// Next to a payload near the size limit the oldest attempts give way: the payload has them too.
static bool pack_letter(Stentor__V1__DeadLetter *letter, Arena *arena, Str *ret)
{
    while (letter->n_attempts > 0 &&
           protobuf_c_message_get_packed_size(&letter->base) > EVENT_BYTES_MAX) {
        letter->attempts++;
        letter->n_attempts--;
    }
    return event_pack(&letter->base, arena, ret, NULL);
}

// ---- the subject ----

static Str find_tenant(Str subject, const ProtobufCMessage *payload)
{
    if (str_starts(subject, STR("ntf.inbound."))) { // its subject names the vendor
        const Stentor__V1__Meta *meta = payload == NULL ? NULL : event_meta(payload);
        return meta == NULL ? STR_EMPTY : str_from(meta->tenant);
    }
    if (str_starts(subject, STR("evt."))) {
        return subject_token(subject, 1);
    }
    if (str_starts(subject, STR("ntf.status.")) || str_starts(subject, STR("cfg."))) {
        return subject_token(subject, 2);
    }
    return subject_last(subject);
}

// ---- the dead letter ----

// Foreign bytes stand in a reason, and a cut may have gone through a character; a dead
// letter with a string that is not UTF-8 could not be read.
static char *readable(Str text, Arena *arena)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len;) {
        size_t step = str_utf8_step(str_slice(text, i, text.len));
        if (step == 0 || copy[i] == '\0') {
            copy[i] = '?';
            step = 1;
        }
        i += step;
    }
    return copy;
}

static bool ends_word(char c)
{
    return c == ' ' || c == '\'' || c == '"' || c == '\0';
}

static bool may_be_address(Str word)
{
    bool number = word.len > 1 && word.ptr[0] == '+' && word.ptr[1] >= '0' && word.ptr[1] <= '9';
    return number || str_find(word, '@') >= 0;
}

// A reason may quote what it refuses; of a sealed event it must not be readable for as long as
// the letter is.
static char *without_addresses(char *text)
{
    for (char *word = text; *word != '\0';) {
        size_t len = 0;
        while (!ends_word(word[len])) {
            len++;
        }
        if (may_be_address(str_of(word, len))) {
            memset(word, '*', len);
        }
        word += word[len] == '\0' ? len : len + 1;
    }
    return text;
}

const char *dead_letter_place(const BusMessage *message, Arena *arena)
{
    bool chosen_elsewhere = str_eq(str_from(message->stream), STR("EVENTS"));
    if (chosen_elsewhere || message->event_id.len == 0) {
        return arena_printf(arena, "%llu", (unsigned long long)bus_message_place(message));
    }
    return arena_printf(arena, "id/" STR_FMT, STR_ARG(message->event_id));
}

// payload NULL: not read.
static bool pack(
    const BusMessage *message, const DeadLetterSpec *spec, const ProtobufCMessage *payload,
    Str notification, Arena *arena, BusOut *ret)
{
    const char *stage = spec->stage;
    Stentor__V1__DeadLetter letter;
    Str tenant = find_tenant(message->subject, payload);
    stentor__v1__dead_letter__init(&letter);
    // With the stage: an event that two stages read and neither understands has a dead letter from
    // each.
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *place = arena_printf(arena, "%s/%s", stage, dead_letter_place(message, arena));
    event_id_derive("dead", str_from(message->stream), str_from(place), event_id);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(arena, id_is_tenant(tenant) ? tenant : STR("unknown")),
        .notification_id = arena_cstr(arena, notification),
        .causation_id = readable(
            message->kept.len > 0 ? event_id_in_clear(message->event_id, arena) : message->event_id,
            arena),
        .at_us = message->stored_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    subject_dead(subject, stage, tenant);
    letter.meta = &meta;
    letter.stage = arena_cstr(arena, str_from(stage));
    letter.reason = readable(str_from(spec->reason), arena);
    letter.reason = message->kept.len > 0 ? without_addresses(letter.reason) : letter.reason;
    letter.reason_code = arena_cstr(arena, spec->reason_code);
    letter.stream = arena_cstr(arena, str_from(message->stream));
    letter.stream_sequence = bus_message_place(message);
    letter.subject = readable(message->subject, arena);
    Str kept = message->kept.len > 0 ? message->kept : message->payload;
    letter.payload = pb_data(str_slice(kept, 0, EVENT_BYTES_MAX - LETTER_ROOM));
    letter.deliveries = message->delivered;
    letter.produced_at_us = spec->produced_at_us;
    fill_attempts(&letter, payload, spec->last_attempt, arena);
    *ret = (BusOut){
        .subject = subject, .event_id = str_from(event_id), .traceparent = message->traceparent};
    return pack_letter(&letter, arena, &ret->payload);
}

bool dead_letter_pack(
    const BusMessage *message, const DeadLetterSpec *spec, Arena *arena, BusOut *ret)
{
    // No payload of a stream without notifications, or of one that cannot be read.
    const ProtobufCMessageDescriptor *type = event_type_of_stream(str_from(message->stream));
    const ProtobufCMessage *payload =
        type == NULL ? NULL : event_unpack(type, message->payload, arena, NULL);
    return pack(message, spec, payload, notification_of(payload), arena, ret);
}

bool dead_letter_pack_unread(
    const BusMessage *message, const DeadLetterSpec *spec, Str notification, Arena *arena,
    BusOut *ret)
{
    return pack(message, spec, NULL, notification, arena, ret);
}
