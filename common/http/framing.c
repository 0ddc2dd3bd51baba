// SPDX-License-Identifier: Apache-2.0
#include "common/http/framing.h"

#include <string.h>

enum { LENGTH_DIGITS_MAX = 15 };

// clang-format off
static const HttpRefusal HOST_MISSING = {400, "malformed-request", "The request is malformed",
    "a request of HTTP/1.1 must have a header Host"};
// clang-format on

static bool refuse(HttpRefusal *refusal, const char *detail)
{
    *refusal = (HttpRefusal){400, "ambiguous-request", "The request's length is ambiguous", detail};
    return false;
}

bool http_is_token(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return s.len > 0;
}

// Visible characters, space, tab, and bytes above ASCII.
static bool is_value(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

// What decides about a request: two of one name would leave it to chance which one counts.
// clang-format off
static const char *const SINGLE[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding", "Expect",
    "Authorization", "Idempotency-Key", "Nats-Msg-Id", "Stentor-Type", "traceparent",
    "ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time",
    "X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp",
};
// clang-format on

static bool must_be_single(Str name)
{
    for (size_t i = 0; i < sizeof SINGLE / sizeof SINGLE[0]; i++) {
        if (str_eq_nocase(name, str_from(SINGLE[i]))) {
            return true;
        }
    }
    return false;
}

static bool check_fields(const HttpField *fields, size_t count, HttpRefusal *refusal)
{
    for (size_t i = 0; i < count; i++) {
        if (!http_is_token(fields[i].name)) {
            return refuse(
                refusal, "the name of a header has white space or another character "
                         "that a name may not have");
        }
        if (!is_value(fields[i].value)) {
            return refuse(refusal, "the value of a header has a control character");
        }
        for (size_t k = 0; k < i; k++) {
            if (str_eq_nocase(fields[i].name, fields[k].name) && must_be_single(fields[i].name)) {
                return refuse(
                    refusal,
                    "a header that may be given once is given twice: Host, Content-Length, "
                    "Transfer-Encoding, Authorization, Idempotency-Key or the like");
            }
        }
    }
    return true;
}

static const HttpField *find_field(const HttpField *fields, size_t count, Str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(fields[i].name, name)) {
            return &fields[i];
        }
    }
    return NULL;
}

static bool read_length(Str text, uint64_t *ret, HttpRefusal *refusal)
{
    uint64_t length = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return refuse(refusal, "Content-Length is not a number of digits");
        }
        length = length * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (text.len == 0 || text.len > LENGTH_DIGITS_MAX) {
        return refuse(refusal, "Content-Length is not a number of 1 to 15 digits");
    }
    *ret = length;
    return true;
}

static bool read_body(
    const HttpField *length, const HttpField *coding, Str version, HttpFraming *ret,
    HttpRefusal *refusal)
{
    if (coding == NULL) {
        return length == NULL || read_length(length->value, &ret->length, refusal);
    }
    if (length != NULL) {
        return refuse(refusal, "Content-Length and Transfer-Encoding are both given");
    }
    if (!str_eq_nocase(coding->value, STR("chunked")) || !str_eq(version, STR("HTTP/1.1"))) {
        return refuse(refusal, "Transfer-Encoding is not chunked, or the request is HTTP/1.0");
    }
    ret->chunked = true;
    return true;
}

bool http_framing_read(
    const HttpField *fields, size_t count, Str version, HttpFraming *ret, HttpRefusal *ret_refusal)
{
    HttpFraming framing = {0};
    if (!check_fields(fields, count, ret_refusal) ||
        !read_body(
            find_field(fields, count, STR("Content-Length")),
            find_field(fields, count, STR("Transfer-Encoding")), version, &framing, ret_refusal)) {
        return false;
    }
    if (!str_eq(version, STR("HTTP/1.0")) && find_field(fields, count, STR("Host")) == NULL) {
        *ret_refusal = HOST_MISSING;
        return false;
    }
    const HttpField *expect = find_field(fields, count, STR("Expect"));
    if (expect != NULL && !str_eq_nocase(expect->value, STR("100-continue"))) {
        *ret_refusal = (HttpRefusal){
            417, "expectation-failed", "The expectation is not supported",
            "Expect may only be 100-continue"};
        return false;
    }
    framing.wants_100 = expect != NULL;
    *ret = framing;
    return true;
}
