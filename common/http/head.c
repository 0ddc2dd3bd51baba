// SPDX-License-Identifier: Apache-2.0
#include "common/http/head.h"

#include <string.h>

// What is left of a CRLF.
static bool is_line_end(const char *at, const char *end)
{
    return end - at >= 2 && at[0] == '\0' && at[1] == '\0';
}

// *at: behind the line before; then behind this one.
static bool is_plain_field(const HttpField *field, const char **at, const char *end)
{
    if (field->name.ptr != *at) {
        return false; // another line stands between them, or it was put together elsewhere
    }
    const char *value = *at + field->name.len + 1;
    while (*value == ' ' || *value == '\t') {
        value++;
    }
    const char *behind = value + field->value.len;
    *at = behind + 2;
    return (field->value.len == 0 || field->value.ptr == value) && is_line_end(behind, end);
}

bool http_head_is_plain(const HttpHead *head, const HttpField *fields, size_t count)
{
    const char *end = head->method + head->size;
    const char *behind = head->version + strlen(head->version);
    if (head->target.ptr != head->method + strlen(head->method) + 1 ||
        head->version != head->target.ptr + head->target.len + 1 || !is_line_end(behind, end)) {
        return false;
    }
    const char *at = behind + 2;
    for (size_t i = 0; i < count; i++) {
        if (!is_plain_field(&fields[i], &at, end)) {
            return false;
        }
    }
    return is_line_end(at, end) && at + 2 == end;
}
