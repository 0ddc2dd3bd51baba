// SPDX-License-Identifier: Apache-2.0
#include "common/trace/context.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/bus/jetstream/trace.h"
#include "common/codec/hash.h"

// ---- sampling ----

bool trace_sampler_parse(Str name, Str argument, TraceSampler *ret, Error *err)
{
    static const char BASE[] = "parentbased_";
    Str rest = name;
    *ret = (TraceSampler){.by_parent = str_starts(name, STR("parentbased_"))};
    if (ret->by_parent) {
        rest = str_slice(name, sizeof BASE - 1, name.len);
    }
    if (str_eq(rest, STR("always_on"))) {
        ret->ratio = 1;
        return true;
    }
    if (str_eq(rest, STR("always_off"))) {
        ret->none = !ret->by_parent;
        return true;
    }
    if (!str_eq(rest, STR("traceidratio"))) {
        return error_set(
            err, ERROR_CONFIG,
            "OTEL_TRACES_SAMPLER is '" STR_FMT
            "': expected always_on, always_off, traceidratio, or "
            "one of them behind parentbased_",
            STR_ARG(str_slice(name, 0, 80)));
    }
    char text[32], *end = text;
    bool fits = argument.len > 0 && str_to_c(argument, text, sizeof text);
    ret->ratio = fits ? strtod(text, &end) : 0;
    if (!fits || *end != '\0' || !(ret->ratio >= 0 && ret->ratio <= 1)) {
        return error_set(
            err, ERROR_CONFIG,
            "OTEL_TRACES_SAMPLER_ARG is '" STR_FMT "': expected a number from 0 to 1, such as 0.01",
            STR_ARG(str_slice(argument, 0, 80)));
    }
    return true;
}

// splitmix64: ids of one millisecond ascend by one, and must not be sampled all together.
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

bool trace_sampled(const TraceSampler *sampler, const uint8_t trace_id[TRACE_ID_LEN])
{
    uint64_t number = 0;
    for (size_t i = SPAN_ID_LEN; i < TRACE_ID_LEN; i++) {
        number = number << 8 | trace_id[i];
    }
    return !sampler->none &&
           (sampler->ratio >= 1 || (double)mixed(number) < sampler->ratio * 18446744073709551616.0);
}

// ---- the header ----

static bool read_hex(Str text, uint8_t *out, size_t size)
{
    size_t len = 0;
    return hex_decode(text, out, size, &len) && len == size;
}

bool trace_parse(Str traceparent, TraceContext *ret)
{
    uint8_t flags = 0;
    if (!trace_is_parent(traceparent) ||
        !read_hex(str_slice(traceparent, 3, 35), ret->trace_id, TRACE_ID_LEN) ||
        !read_hex(str_slice(traceparent, 36, 52), ret->span_id, SPAN_ID_LEN) ||
        !read_hex(str_slice(traceparent, 53, 55), &flags, 1)) {
        return false;
    }
    ret->sampled = (flags & 1) != 0;
    return true;
}

void trace_format(const TraceContext *context, char out[TRACEPARENT_SIZE])
{
    memcpy(out, "00-", 3);
    hex_encode(context->trace_id, TRACE_ID_LEN, out + 3);
    out[35] = '-';
    hex_encode(context->span_id, SPAN_ID_LEN, out + 36);
    memcpy(out + 52, context->sampled ? "-01" : "-00", 4);
}

// ---- ids ----

void trace_span_of_event(Str event_id, uint8_t out[SPAN_ID_LEN])
{
    uint8_t bytes[SHA256_LEN];
    size_t len = 0;
    if (event_id.len != EVENT_ID_LEN || !base64url_decode(event_id, bytes, sizeof bytes, &len) ||
        len < SPAN_ID_LEN) {
        sha256(event_id, bytes);
    }
    memcpy(out, bytes, SPAN_ID_LEN);
}

void trace_accept_span(Str notification_id, uint8_t out[SPAN_ID_LEN])
{
    char id[EVENT_ID_SIZE];
    event_id_derive("request", notification_id, STR_EMPTY, id);
    trace_span_of_event(str_from(id), out);
}

static int crockford(char c)
{
    static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    const char *at = c == '\0' ? NULL : strchr(DIGITS, c);
    return at == NULL ? -1 : (int)(at - DIGITS);
}

// 26 characters of 5 bits are 130: the first one has 3.
bool trace_id_of(Str notification_id, uint8_t out[TRACE_ID_LEN])
{
    if (!id_parse(notification_id, "ntf_", NULL)) {
        return false;
    }
    const char *at = notification_id.ptr + 4;
    unsigned bits = 0, have = 0;
    size_t n = 0;
    for (size_t i = 0; i < ULID_LEN; i++) {
        bits = (bits << 5 | (unsigned)crockford(at[i])) & 0xffff;
        have += i == 0 ? 3 : 5;
        if (have >= 8) {
            have -= 8;
            out[n++] = (uint8_t)(bits >> have);
        }
    }
    assert(n == TRACE_ID_LEN);
    return true;
}

bool trace_of_message(
    const TraceSampler *sampler, Str traceparent, Str notification_id, TraceContext *ret)
{
    if (traceparent.len > 0 && trace_parse(traceparent, ret)) {
        return true;
    }
    if (!trace_id_of(notification_id, ret->trace_id)) {
        return false;
    }
    trace_accept_span(notification_id, ret->span_id);
    ret->sampled = trace_sampled(sampler, ret->trace_id);
    return true;
}
