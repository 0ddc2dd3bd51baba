// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/pub_ack.h"

#include <jansson.h>
#include <string.h>

enum {
    ERR_MESSAGE_TOO_LARGE = 10054,   // "message size exceeds maximum allowed"
    ERR_WRONG_LAST_SEQUENCE = 10071, // another message came on the subject: "wrong last sequence"
    PAYLOAD_MAX = 4096,
};

// What stands right after `key` in `payload`; the empty slice when it is not there.
static Str find_after(Str payload, Str key)
{
    const char *end = payload.ptr + payload.len;
    for (const char *p = payload.ptr; p + key.len <= end; p++) {
        p = memchr(p, key.ptr[0], (size_t)(end - p));
        if (p == NULL || p + key.len > end) {
            break;
        }
        if (memcmp(p, key.ptr, key.len) == 0) {
            return str_of(p + key.len, (size_t)(end - p) - key.len);
        }
    }
    return STR_EMPTY;
}

static uint64_t read_sequence(Str at)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < at.len && at.ptr[i] == ' ') {
        i++;
    }
    for (size_t digits = 0; i < at.len && digits < 19; i++, digits++) {
        unsigned digit = (unsigned)(unsigned char)at.ptr[i] - '0';
        if (digit > 9) {
            break;
        }
        value = 10 * value + digit;
    }
    return value;
}

static bool read_refusal(Str payload, PubAck *ret, Error *err)
{
    json_t *root = json_loadb(payload.ptr, payload.len, 0, NULL);
    json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(json_object_get(error, "description"));
    ret->error_code = (int)json_integer_value(json_object_get(error, "err_code"));
    // JetStream always gives its own code; ingest's intake answers as it does, without one.
    bool refused_by_ingest = ret->error_code == 0 && error != NULL &&
                             json_integer_value(json_object_get(error, "code")) == 400;
    ErrorKind kind = ret->error_code == ERR_MESSAGE_TOO_LARGE || refused_by_ingest ? ERROR_PERMANENT
                     : ret->error_code == ERR_WRONG_LAST_SEQUENCE                  ? ERROR_CONFLICT
                                                                  : ERROR_TRANSIENT;
    if (kind == ERROR_CONFLICT && text != NULL) { // "wrong last sequence: 7"
        ret->sequence = read_sequence(find_after(str_from(text), STR("sequence:")));
    }
    error_set(
        err, kind, "jetstream: %s (%d)",
        text != NULL ? text : "the answer is not an acknowledgement", ret->error_code);
    json_decref(root);
    return false;
}

bool pub_ack_parse(Str payload, PubAck *ret, Error *err)
{
    *ret = (PubAck){0};
    if (payload.len > PAYLOAD_MAX) {
        return error_set(err, ERROR_TRANSIENT, "jetstream: an ack of %zu bytes", payload.len);
    }
    if (find_after(payload, STR("\"error\":")).len > 0) {
        return read_refusal(payload, ret, err);
    }
    ret->sequence = read_sequence(find_after(payload, STR("\"seq\":")));
    if (ret->sequence == 0) {
        return error_set(err, ERROR_TRANSIENT, "jetstream: an ack without a sequence");
    }
    ret->duplicate = str_starts(str_trim(find_after(payload, STR("\"duplicate\":"))), STR("true"));
    return true;
}
