// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/ack_subject.h"

#include <string.h>

enum { TOKENS_MAX = 12, TOKENS_V1 = 9, TOKENS_V2 = 11 };

static size_t split(Str subject, Str tokens[TOKENS_MAX + 1])
{
    size_t count = 0;
    Str token;
    while (count <= TOKENS_MAX && str_split(&subject, '.', &token)) {
        tokens[count++] = token;
    }
    return count;
}

// Digits only: a hand-rolled one, this runs for every delivery.
static bool read_number(Str s, uint64_t *ret)
{
    uint64_t value = 0;
    if (s.len == 0 || s.len > 19) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9) {
            return false;
        }
        value = 10 * value + digit;
    }
    *ret = value;
    return true;
}

bool ack_subject_parse(Str subject, AckSubject *ret)
{
    Str t[TOKENS_MAX + 1];
    if (!str_starts(subject, STR("$JS.ACK."))) {
        return false;
    }
    size_t count = split(subject, t);
    const Str *at = NULL; // the stream's token
    if (count == TOKENS_V1) {
        at = t + 2;
    } else if (count == TOKENS_V2 || count == TOKENS_MAX) {
        at = t + 4;
    }
    uint64_t delivered, stream, consumer, ns, pending;
    if (at == NULL || at[0].len == 0 || at[1].len == 0 || !read_number(at[2], &delivered) ||
        !read_number(at[3], &stream) || !read_number(at[4], &consumer) ||
        !read_number(at[5], &ns) || !read_number(at[6], &pending)) {
        return false;
    }
    *ret = (AckSubject){
        .stream = at[0],
        .consumer = at[1],
        .delivered = delivered > UINT32_MAX ? UINT32_MAX : (uint32_t)delivered,
        .stream_sequence = stream,
        .consumer_sequence = consumer,
        .stored_at_us = (int64_t)(ns / 1000),
        .pending = pending};
    return true;
}
