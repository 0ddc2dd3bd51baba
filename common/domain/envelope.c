// SPDX-License-Identifier: Apache-2.0
#include "common/domain/envelope.h"

#include "common/names/event_type.h"
#include "common/names/member.h"

static Str text_of(const json_t *value)
{
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

static Str urn_type(const json_t *types, size_t at)
{
    return event_type_of_urn(text_of(json_array_get(types, at)));
}

bool envelope_is(const json_t *root)
{
    return urn_type(member_value(root, "message_type"), 0).len > 0;
}

// A message has the URNs of its interfaces as well, its own first.
static Str find_type(const json_t *types)
{
    for (size_t i = 0; i < json_array_size(types); i++) {
        Str plain = event_type_plain(urn_type(types, i));
        if (event_type_is_known(plain)) {
            return plain;
        }
    }
    return urn_type(types, 0);
}

static bool take_text(
    const json_t *root, const char *name, const char *shown, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = member_value(root, name);
    *ret = arena_str(arena, text_of(value));
    return value == NULL || json_is_string(value) ||
           error_set(err, ERROR_PERMANENT, "the envelope's '%s' must be text", shown);
}

bool envelope_read(const json_t *root, Arena *arena, Envelope *ret, Error *err)
{
    Envelope envelope = {.message = member_value(root, "message")};
    if (!envelope_is(root)) {
        return error_set(
            err, ERROR_PERMANENT,
            "the envelope's 'messageType' must be an array of URNs (HINT: "
            "[\"urn:message:BookWorm.Contracts:PlaceOrderCommand\"])");
    }
    if (!json_is_object(envelope.message)) {
        return error_set(err, ERROR_PERMANENT, "the envelope's 'message' must be an object");
    }
    envelope.type = arena_str(arena, find_type(member_value(root, "message_type")));
    bool ok = take_text(root, "message_id", "messageId", arena, &envelope.message_id, err) &&
              take_text(root, "sent_time", "sentTime", arena, &envelope.sent_time, err) &&
              take_text(
                  root, "correlation_id", "correlationId", arena, &envelope.correlation_id, err);
    *ret = envelope;
    return ok;
}
