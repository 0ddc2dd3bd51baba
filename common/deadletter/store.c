// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/id.h"

enum { TIMEOUT_MS = 5000 };

// ---- reading ----

void letter_ask(Bus *bus, uint64_t sequence, BusReply on_reply, void *ctx)
{
    char query[64];
    int len = snprintf(query, sizeof query, "{\"seq\":%" PRIu64 "}", sequence);
    bus_request(
        bus, "$JS.API.STREAM.MSG.GET.DEAD", str_of(query, (size_t)len), TIMEOUT_MS, on_reply, ctx);
}

static bool decode(const json_t *message, const char *key, Arena *arena, Str *ret, Error *err)
{
    Str text = str_from(json_string_value(json_object_get(message, key)));
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 1);
    size_t len = 0;
    if (!base64_decode(text, bytes, text.len / 4 * 3 + 1, &len)) {
        return error_set(err, ERROR_PERMANENT, "'%s' of the stored message is not base64", key);
    }
    *ret = str_of(bytes, len);
    return true;
}

static Str header(Str block, const char *name)
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

static bool read_stored(const json_t *stored, Arena *arena, BusMessage *ret, Error *err)
{
    Str headers = STR_EMPTY;
    BusMessage message = {.stream = "DEAD", .delivered = 1};
    Str time = str_from(json_string_value(json_object_get(stored, "time")));
    Str subject = str_from(json_string_value(json_object_get(stored, "subject")));
    if (!decode(stored, "data", arena, &message.payload, err) ||
        !decode(stored, "hdrs", arena, &headers, err)) {
        return false;
    }
    if (!clock_parse(time, &message.stored_at_us)) {
        return error_set(err, ERROR_PERMANENT, "'time' of the stored message is not a time");
    }
    message.subject = arena_str(arena, subject);
    message.sequence = (uint64_t)json_integer_value(json_object_get(stored, "seq"));
    message.event_id = header(headers, "Nats-Msg-Id");
    message.traceparent = header(headers, "traceparent");
    *ret = message;
    return true;
}

bool letter_reply(Str reply, Arena *arena, BusMessage *ret, bool *ret_found, Error *err)
{
    enum { NO_MESSAGE_FOUND = 10037 };
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *refusal = json_object_get(root, "error");
    const json_t *stored = json_object_get(root, "message");
    bool none = json_integer_value(json_object_get(refusal, "err_code")) == NO_MESSAGE_FOUND;
    bool ok = none;
    if (refusal != NULL && !none) {
        const char *text = json_string_value(json_object_get(refusal, "description"));
        error_set(err, ERROR_PERMANENT, "%s", text != NULL ? text : "JetStream refused");
    } else if (!none) {
        ok = json_is_object(stored)
                 ? read_stored(stored, arena, ret, err)
                 : error_set(err, ERROR_PERMANENT, "JetStream's answer is not a stored message");
    }
    if (ok) {
        *ret_found = !none;
    }
    json_decref(root);
    return ok;
}

// ---- deleting ----

void letter_delete(Bus *bus, uint64_t sequence, bool erase, BusReply on_reply, void *ctx)
{
    char query[64];
    int len = snprintf(
        query, sizeof query, "{\"seq\":%" PRIu64 ",\"no_erase\":%s}", sequence,
        erase ? "false" : "true");
    bus_request(
        bus, "$JS.API.STREAM.MSG.DELETE.DEAD", str_of(query, (size_t)len), TIMEOUT_MS, on_reply,
        ctx);
}

// Its servers say it in several ways, by where the message would lie.
static bool was_not_there(const json_t *refusal)
{
    enum { NO_MESSAGE_FOUND = 10037, SEQUENCE_NOT_FOUND = 10043, DELETE_FAILED = 10057 };
    json_int_t code = json_integer_value(json_object_get(refusal, "err_code"));
    Str text = str_from(json_string_value(json_object_get(refusal, "description")));
    bool none = str_eq(text, STR("no message found")) || str_eq(text, STR("stream store EOF"));
    return code == NO_MESSAGE_FOUND || code == SEQUENCE_NOT_FOUND ||
           (code == DELETE_FAILED && none);
}

bool letter_deleted(Str reply, Error *err)
{
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    bool ok = json_is_true(json_object_get(root, "success"));
    if (!ok) {
        const json_t *refusal = json_object_get(root, "error");
        const char *text = json_string_value(json_object_get(refusal, "description"));
        ErrorKind kind = was_not_there(refusal) ? ERROR_CONFLICT : ERROR_PERMANENT;
        error_set(err, kind, "%s", text != NULL ? text : "JetStream did not answer so");
    }
    json_decref(root);
    return ok;
}
