// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum { TIMEOUT_MS = 5000 };

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

// The server words it in several ways, by where the message would lie.
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
        error_set(
            err, kind, "%s", text != NULL ? text : "JetStream's answer is not one to a deletion");
    }
    json_decref(root);
    return ok;
}
