// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/get_message.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/id.h"

enum { TIMEOUT_MS = 5000, NO_MESSAGE_FOUND = 10037, SERVER_ERRORS = 500 };

DEFINE_CLEANUP(free_json, json_t *, json_decref)

void get_message(Bus *bus, const MessageQuery *query, BusReply on_reply, void *ctx)
{
    char subject[128];
    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.GET.%s", query->stream);
    json_t *body = query->last_of != NULL ? json_pack("{s:s}", "last_by_subj", query->last_of)
                                          : json_pack(
                                                "{s:I, s:s*}", "seq", (json_int_t)query->sequence,
                                                "next_by_subj", query->next_of);
    char *text = json_dumps(body, JSON_COMPACT); // NULL: a subject that is not UTF-8
    bus_request(bus, subject, str_from(text), TIMEOUT_MS, on_reply, ctx);
    free(text);
    json_decref(body);
}

static bool decode(const json_t *message, const char *key, Arena *arena, Str *ret, Error *err)
{
    Str text = str_from(json_string_value(json_object_get(message, key)));
    size_t room = text.len / 4 * 3 + 1;
    uint8_t *bytes = arena_alloc(arena, room);
    size_t len = 0;
    if (!base64_decode(text, bytes, room, &len)) {
        return error_set(err, ERROR_PERMANENT, "'%s' of the stored message is not base64", key);
    }
    *ret = str_of(bytes, len);
    return true;
}

Str get_message_header(Str block, const char *name)
{
    Str line;
    while (str_split(&block, '\n', &line)) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon > 0 && str_eq(str_slice(line, 0, (size_t)colon), str_from(name))) {
            return str_trim(str_slice(line, (size_t)colon + 1, line.len));
        }
    }
    return STR_EMPTY;
}

static bool read_stored(const json_t *stored, Arena *arena, BusMessage *message, Error *err)
{
    Str headers = STR_EMPTY;
    if (!decode(stored, "data", arena, &message->payload, err) ||
        !decode(stored, "hdrs", arena, &headers, err)) {
        return false;
    }
    Str time = str_from(json_string_value(json_object_get(stored, "time")));
    if (!clock_parse(time, &message->stored_at_us)) {
        return error_set(err, ERROR_PERMANENT, "'time' of the stored message is not a time");
    }
    Str subject = str_from(json_string_value(json_object_get(stored, "subject")));
    message->subject = arena_str(arena, subject);
    message->sequence = (uint64_t)json_integer_value(json_object_get(stored, "seq"));
    message->headers = headers;
    message->event_id = get_message_header(headers, "Nats-Msg-Id");
    message->traceparent = get_message_header(headers, "traceparent");
    message->replayed = get_message_header(headers, BUS_REPLAY_HEADER).len > 0;
    return true;
}

bool get_message_reply(
    Str reply, const char *stream, Arena *arena, BusMessage *ret, bool *ret_found, Error *err)
{
    BusMessage message = {.stream = stream, .delivered = 1};
    CLEANUP(free_json) json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *refusal = json_object_get(root, "error");
    const json_t *stored = json_object_get(root, "message");
    bool none = json_integer_value(json_object_get(refusal, "err_code")) == NO_MESSAGE_FOUND;
    if (refusal != NULL && !none) {
        const char *text = json_string_value(json_object_get(refusal, "description"));
        json_int_t code = json_integer_value(json_object_get(refusal, "code"));
        return error_set(
            err, code >= SERVER_ERRORS ? ERROR_TRANSIENT : ERROR_PERMANENT, "stream '%s': %s",
            stream, text != NULL ? text : "JetStream refused");
    }
    if (!none && !json_is_object(stored)) {
        return error_set(
            err, ERROR_PERMANENT, "stream '%s': JetStream's answer is not a stored message",
            stream);
    }
    if (!none && !read_stored(stored, arena, &message, err)) {
        return error_wrap(err, "stream '%s'", stream);
    }
    *ret = message;
    *ret_found = !none;
    return true;
}
