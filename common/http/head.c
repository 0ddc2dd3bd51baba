// SPDX-License-Identifier: Apache-2.0
#include "common/http/head.h"

#include <string.h>

enum { METHOD_MAX = 32, LENGTH_DIGITS_MAX = 15, TARGET_MAX = 16 * 1024 };

// ---- refusals ----

static bool refuse(HttpRefusal *refusal, const char *detail)
{
    *refusal = (HttpRefusal){400, "malformed-request", "The request is malformed", detail};
    return false;
}

static bool refuse_framing(HttpRefusal *refusal, const char *detail)
{
    *refusal =
        (HttpRefusal){400, "ambiguous-request", "Where the request ends is not clear", detail};
    return false;
}

static bool refuse_size(HttpRefusal *refusal, int status, const char *detail)
{
    *refusal = (HttpRefusal){status, "head-too-large", "The head is too large", detail};
    return false;
}

// ---- characters ----

static bool is_token_char(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
        return true;
    }
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_token(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_token_char((unsigned char)s.ptr[i])) {
            return false;
        }
    }
    return s.len > 0;
}

static bool is_target(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '#') {
            return false;
        }
    }
    return s.len > 0 && (s.ptr[0] == '/' || str_eq(s, STR("*")));
}

// Visible characters, space, tab, and bytes above ASCII.
static bool is_field_value(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static Str trim_blanks(Str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s = str_slice(s, 1, s.len);
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

// ---- where it ends ----

static bool too_long(Str bytes, HttpRefusal *refusal)
{
    if (bytes.len <= HTTP_HEAD_MAX) {
        return false;
    }
    const char *end = memchr(bytes.ptr, '\n', bytes.len);
    if (end == NULL || end - bytes.ptr > TARGET_MAX) {
        (void)refuse_size(refusal, 414, "the request line may have at most 16384 bytes");
    } else {
        (void)refuse_size(
            refusal, 431, "request line and headers may have at most 32768 bytes together");
    }
    return true;
}

HeadScan http_head_scan(Str bytes, size_t *scanned, size_t *ret_len, HttpRefusal *refusal)
{
    const char *at = NULL;
    while (*scanned < bytes.len &&
           (at = memchr(bytes.ptr + *scanned, '\n', bytes.len - *scanned)) != NULL) {
        size_t i = (size_t)(at - bytes.ptr);
        if (i == 0 || bytes.ptr[i - 1] != '\r') {
            (void)refuse_framing(refusal, "a line ends with LF alone; lines end with CRLF");
            return HEAD_REFUSED;
        }
        *scanned = i + 1;
        if (i >= 3 && bytes.ptr[i - 2] == '\n') {
            *ret_len = i + 1;
            return too_long(str_slice(bytes, 0, i + 1), refusal) ? HEAD_REFUSED : HEAD_WHOLE;
        }
    }
    *scanned = bytes.len;
    // The first byte tells a TLS handshake or another protocol at once. One empty line in front is
    // allowed (RFC 9112 2.2).
    if (bytes.len > 0 && bytes.ptr[0] != '\r' && !is_token_char((unsigned char)bytes.ptr[0])) {
        (void)refuse(refusal, "this is not HTTP; is it TLS? TLS ends at the proxy");
        return HEAD_REFUSED;
    }
    return too_long(bytes, refusal) ? HEAD_REFUSED : HEAD_PART;
}

// ---- request line ----

static bool read_version(Str version, HttpHead *head, HttpRefusal *refusal)
{
    if (!str_eq(version, STR("HTTP/1.1")) && !str_eq(version, STR("HTTP/1.0"))) {
        (void)refuse(refusal, "the request line must be 'METHOD /path HTTP/1.1'");
        if (version.len == 8 && str_starts(version, STR("HTTP/"))) {
            refusal->status = 505;
            refusal->detail = "the version must be HTTP/1.1 or HTTP/1.0";
        }
        return false;
    }
    head->keep_alive = str_ends(version, STR("1.1"));
    return true;
}

static bool read_request_line(Str line, HttpHead *head, HttpRefusal *refusal)
{
    Str target = STR_EMPTY;
    if (!str_split(&line, ' ', &head->method) || !is_token(head->method) ||
        head->method.len > METHOD_MAX || !str_split(&line, ' ', &target)) {
        return refuse(refusal, "the request line must be 'METHOD /path HTTP/1.1'");
    }
    if (!read_version(line, head, refusal)) {
        return false;
    }
    if (target.len > TARGET_MAX) {
        return refuse_size(refusal, 414, "the request line may have at most 16384 bytes");
    }
    if (!is_target(target)) {
        return refuse(
            refusal, "the target must be a path that begins with '/', of visible ASCII characters");
    }
    ptrdiff_t mark = str_find(target, '?');
    head->path = mark < 0 ? target : str_slice(target, 0, (size_t)mark);
    head->query = mark < 0 ? STR_EMPTY : str_slice(target, (size_t)mark + 1, target.len);
    return true;
}

// ---- headers ----

static bool read_field(Str line, HttpField *ret, HttpRefusal *refusal)
{
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
        return refuse_framing(refusal, "a header is folded over two lines");
    }
    ptrdiff_t colon = str_find(line, ':');
    if (colon < 0) {
        return refuse(refusal, "a header has no colon");
    }
    ret->name = str_slice(line, 0, (size_t)colon);
    ret->value = trim_blanks(str_slice(line, (size_t)colon + 1, line.len));
    if (!is_token(ret->name)) {
        return refuse_framing(
            refusal, "a header's name has white space or another character that names have not");
    }
    return is_field_value(ret->value) ||
           refuse_framing(refusal, "a header's value has a control character");
}

// `lines`: every line with its CRLF.
static bool read_fields(Str lines, Arena *arena, HttpHead *head, HttpRefusal *refusal)
{
    HttpField fields[HTTP_FIELDS_MAX];
    while (lines.len > 0) {
        ptrdiff_t end = str_find(lines, '\n');
        Str line = str_slice(lines, 0, (size_t)end - 1);
        lines = str_slice(lines, (size_t)end + 1, lines.len);
        if (head->field_count == HTTP_FIELDS_MAX) {
            return refuse_size(refusal, 431, "more than 100 headers");
        }
        if (!read_field(line, &fields[head->field_count], refusal)) {
            return false;
        }
        head->field_count++;
    }
    head->fields = arena_copy(arena, fields, head->field_count * sizeof *fields);
    return true;
}

// What decides where a request ends, who sends it, or what it means: two of them, and a proxy may
// have read the other one.
// clang-format off
static const char *const SINGLE[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding", "Expect",
    "Authorization", "Idempotency-Key", "Nats-Msg-Id", "Stentor-Type", "traceparent",
    "ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time",
    "X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp",
};
// clang-format on

static bool check_single(const HttpHead *head, HttpRefusal *refusal)
{
    for (size_t i = 1; i < head->field_count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!str_eq_nocase(head->fields[i].name, head->fields[k].name)) {
                continue;
            }
            for (size_t s = 0; s < sizeof SINGLE / sizeof SINGLE[0]; s++) {
                if (str_eq_nocase(head->fields[i].name, str_from(SINGLE[s]))) {
                    return refuse_framing(
                        refusal, "a header that may stand once stands twice: Host, Content-Length, "
                                 "Transfer-Encoding, Authorization, Idempotency-Key or the like");
                }
            }
        }
    }
    return true;
}

static const HttpField *find_field(const HttpHead *head, Str name)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (str_eq_nocase(head->fields[i].name, name)) {
            return &head->fields[i];
        }
    }
    return NULL;
}

Str http_head_field(const HttpHead *head, Str name)
{
    const HttpField *field = find_field(head, name);
    return field == NULL ? STR_EMPTY : field->value;
}

// ---- what the headers say of the framing ----

static bool read_length(Str text, HttpHead *head, HttpRefusal *refusal)
{
    bool ok = text.len > 0 && text.len <= LENGTH_DIGITS_MAX;
    for (size_t i = 0; ok && i < text.len; i++) {
        ok = text.ptr[i] >= '0' && text.ptr[i] <= '9';
        head->length = head->length * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return ok || refuse_framing(refusal, "Content-Length is not a number");
}

static bool read_framing(HttpHead *head, HttpRefusal *refusal)
{
    const HttpField *length = find_field(head, STR("Content-Length"));
    const HttpField *coding = find_field(head, STR("Transfer-Encoding"));
    if (length != NULL && coding != NULL) {
        return refuse_framing(refusal, "both Content-Length and Transfer-Encoding");
    }
    if (coding != NULL) {
        head->chunked = true;
        return (head->keep_alive && str_eq_nocase(coding->value, STR("chunked"))) ||
               refuse_framing(
                   refusal, "Transfer-Encoding may be 'chunked' alone, and that in HTTP/1.1");
    }
    return length == NULL || read_length(length->value, head, refusal);
}

static bool wants_close(const HttpHead *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        Str rest = head->fields[i].value;
        Str token = STR_EMPTY;
        if (!str_eq_nocase(head->fields[i].name, STR("Connection"))) {
            continue;
        }
        while (str_split(&rest, ',', &token)) {
            if (str_eq_nocase(trim_blanks(token), STR("close"))) {
                return true;
            }
        }
    }
    return false;
}

static bool read_expectation(HttpHead *head, HttpRefusal *refusal)
{
    Str expect = http_head_field(head, STR("Expect"));
    if (expect.len == 0 || !head->keep_alive) { // HTTP/1.0 has none
        return true;
    }
    if (!str_eq_nocase(expect, STR("100-continue"))) {
        *refusal = (HttpRefusal){
            417, "expectation-failed", "Not an expectation that can be met",
            "Expect may be '100-continue'"};
        return false;
    }
    head->wants_100 = head->chunked || head->length > 0;
    return true;
}

bool http_head_parse(Str head_bytes, Arena *arena, HttpHead *ret, HttpRefusal *refusal)
{
    HttpHead head = {0};
    Str lines = str_slice(head_bytes, 0, head_bytes.len - 2); // without the empty line
    if (str_starts(lines, STR("\r\n"))) {
        lines = str_slice(lines, 2, lines.len);
    }
    ptrdiff_t end = str_find(lines, '\n');
    if (end < 1) {
        return refuse(refusal, "there is no request line");
    }
    if (!read_request_line(str_slice(lines, 0, (size_t)end - 1), &head, refusal) ||
        !read_fields(str_slice(lines, (size_t)end + 1, lines.len), arena, &head, refusal) ||
        !check_single(&head, refusal)) {
        return false;
    }
    if (head.keep_alive && find_field(&head, STR("Host")) == NULL) {
        return refuse(refusal, "there is no Host header");
    }
    if (!read_framing(&head, refusal) || !read_expectation(&head, refusal)) {
        return false;
    }
    head.keep_alive = head.keep_alive && !wants_close(&head);
    *ret = head;
    return true;
}
