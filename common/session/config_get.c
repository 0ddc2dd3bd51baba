// SPDX-License-Identifier: Apache-2.0
#include "common/session/config_get.h"

#include <jansson.h>

#include "common/base/id.h"

enum { ENTRY_MAX = 128 * 1024 };

// *ret_message: borrowed of the answer, which the caller frees; NULL: there is none.
static json_t *ask_last(
    Session *session, Arena *arena, const char *subject, const json_t **ret_message, Error *err)
{
    Str reply = STR_EMPTY;
    const char *query = arena_printf(arena, "{\"last_by_subj\":\"%s\"}", subject);
    if (!session_request(
            session, "$JS.API.STREAM.MSG.GET.CONFIG", str_from(query), arena, &reply, err)) {
        return NULL;
    }
    json_t *answer = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *error = json_object_get(answer, "error");
    *ret_message = json_object_get(answer, "message");
    if (*ret_message != NULL || json_integer_value(json_object_get(error, "code")) == 404) {
        return answer;
    }
    const char *text = json_string_value(json_object_get(error, "description"));
    (void)error_set(
        err, error != NULL ? ERROR_TRANSIENT : ERROR_PERMANENT, "CONFIG: %s",
        text != NULL ? text : "the answer cannot be read");
    json_decref(answer);
    return NULL;
}

static uint64_t sequence_of(const json_t *message)
{
    return (uint64_t)json_integer_value(json_object_get(message, "seq"));
}

bool config_get(
    Session *session, Arena *arena, const char *subject, Str *ret_payload, uint64_t *ret_sequence,
    Error *err)
{
    const json_t *message = NULL;
    *ret_payload = STR_EMPTY;
    *ret_sequence = 0;
    json_t *answer = ask_last(session, arena, subject, &message, err);
    if (answer == NULL) {
        return false;
    }
    size_t len = 0;
    uint8_t *bytes = arena_alloc(arena, ENTRY_MAX);
    const char *data = json_string_value(json_object_get(message, "data"));
    bool ok = data == NULL || base64_decode(str_from(data), bytes, ENTRY_MAX, &len) ||
              error_set(err, ERROR_PERMANENT, "CONFIG's answer cannot be read");
    if (ok) {
        *ret_payload = str_of(bytes, len);
        *ret_sequence = sequence_of(message);
    }
    json_decref(answer);
    return ok;
}

bool config_get_sequence(
    Session *session, Arena *arena, const char *subject, uint64_t *ret_sequence, Error *err)
{
    const json_t *message = NULL;
    json_t *answer = ask_last(session, arena, subject, &message, err);
    *ret_sequence = sequence_of(message);
    json_decref(answer);
    return answer != NULL;
}
