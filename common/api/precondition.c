// SPDX-License-Identifier: Apache-2.0
#include "common/api/precondition.h"

#include <inttypes.h>

// ---- reading ----

static bool take_prefix(Str *rest, Str prefix)
{
    bool there = str_starts(*rest, prefix);
    *rest = there ? str_slice(*rest, prefix.len, rest->len) : *rest;
    return there;
}

// Tags of ours are numbers; one of another shape matches nothing, and neither does a weak one.
static bool is_sequence(Str text, uint64_t *ret)
{
    int64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    bool good = text.len > 0 && text.ptr[0] != '0' && str_to_i64(text, &number);
    *ret = good ? (uint64_t)number : *ret;
    return good;
}

// One of "a", W/"a".
static bool take_tag(Str *rest, Precondition *ret)
{
    bool weak = take_prefix(rest, STR("W/"));
    if (!take_prefix(rest, STR("\""))) {
        return false;
    }
    ptrdiff_t end = str_find(*rest, '"');
    if (end < 0) {
        return false;
    }
    uint64_t sequence = 0;
    if (is_sequence(str_slice(*rest, 0, (size_t)end), &sequence) && !weak) {
        if (ret->tag_count == PRECONDITION_TAGS_MAX) {
            return false;
        }
        ret->tags[ret->tag_count++] = sequence;
    }
    *rest = str_trim(str_slice(*rest, (size_t)end + 1, rest->len));
    return true;
}

static bool parse_tags(Str text, Precondition *ret)
{
    Str rest = str_trim(text);
    while (take_tag(&rest, ret)) {
        if (rest.len == 0) {
            return true;
        }
        if (!take_prefix(&rest, STR(","))) {
            return false;
        }
        rest = str_trim(rest);
    }
    return false;
}

bool precondition_parse(Str if_match, Str if_none_match, Precondition *ret, const char **ret_wrong)
{
    *ret = (Precondition){.must_exist = str_eq(if_match, STR("*"))};
    ret->must_match = if_match.len > 0 && !ret->must_exist;
    ret->must_be_new = if_none_match.len > 0;
    if (ret->must_match && !parse_tags(if_match, ret)) {
        *ret_wrong = "If-Match";
        return false;
    }
    if (ret->must_be_new && (!str_eq(if_none_match, STR("*")) || if_match.len > 0)) {
        *ret_wrong = "If-None-Match";
        return false;
    }
    return true;
}

bool precondition_read(ApiCall *call, Precondition *ret)
{
    const char *wrong = NULL;
    Str if_match = http_header(call->http, "If-Match");
    Str if_none_match = http_header(call->http, "If-None-Match");
    if (precondition_parse(if_match, if_none_match, ret, &wrong)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_MALFORMED], 1);
    http_problem(
        call->http, 400, "invalid-precondition", "A precondition is not valid", wrong,
        "send If-Match with the ETag as it was answered (\"4711\", at most %d of them) or '*', or "
        "If-None-Match: *, or neither",
        (int)PRECONDITION_TAGS_MAX);
    return false;
}

// ---- deciding ----

bool precondition_is_given(const Precondition *what)
{
    return what->must_exist || what->must_be_new || what->must_match;
}

bool precondition_holds(const Precondition *what, uint64_t there)
{
    if (what->must_be_new) {
        return there == 0;
    }
    if (what->must_exist) {
        return there != 0;
    }
    for (size_t i = 0; i < what->tag_count; i++) {
        if (what->tags[i] == there) {
            return true;
        }
    }
    return !what->must_match;
}

// ---- answers ----

void precondition_tag(ApiCall *call, uint64_t sequence)
{
    const char *tag = arena_printf(call->http->arena, "\"%" PRIu64 "\"", sequence);
    http_response_header(call->http, "ETag", str_from(tag));
}

void precondition_answer_failed(ApiCall *call, uint64_t there)
{
    metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
    if (there == 0) {
        http_problem(
            call->http, 412, "precondition-failed", "The entry has changed", NULL,
            "the entry does not exist; read it again, then repeat the request");
        return;
    }
    precondition_tag(call, there);
    http_problem(
        call->http, 412, "precondition-failed", "The entry has changed", NULL,
        "its ETag is \"%" PRIu64 "\" now; read the entry again, then repeat the request", there);
}
