// SPDX-License-Identifier: Apache-2.0
#include "common/base/error.h"

#include <stdio.h>
#include <string.h>

// Text that did not fit ends in "...", cut so that no UTF-8 sequence is left half.
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0u) == 0x80u) {
        end--;
    }
    memcpy(text + end, "...", 4);
}

bool(error_set)(Error *err, ErrorKind kind, const char *format, ...)
{
    if (err == NULL) {
        return false;
    }
    err->kind = kind;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (length < 0) {
        err->text[0] = '\0';
    } else if ((size_t)length >= sizeof err->text) {
        mark_cut(err->text, sizeof err->text);
    }
    return false;
}

bool error_wrap(Error *err, const char *format, ...)
{
    if (err == NULL) {
        return false;
    }
    char prefix[sizeof err->text];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    if (length < 0) {
        return false;
    }
    char whole[2 * sizeof err->text];
    int total = snprintf(whole, sizeof whole, "%s: %s", prefix, err->text);
    memcpy(err->text, whole, sizeof err->text);
    err->text[sizeof err->text - 1] = '\0';
    if ((size_t)total >= sizeof err->text || (size_t)length >= sizeof prefix) {
        mark_cut(err->text, sizeof err->text);
    }
    return false;
}

void error_clear(Error *err)
{
    if (err != NULL) {
        err->kind = ERROR_NONE;
        err->text[0] = '\0';
#ifdef STENTOR_ERROR_PLACES
        err->file = NULL;
#endif
    }
}

#ifdef STENTOR_ERROR_PLACES
Error *error_mark(Error *err, const char *file, int line)
{
    if (err != NULL) {
        err->file = file;
        err->line = line;
    }
    return err;
}
#endif

void error_at(const Error *err, char *out, size_t size)
{
    out[0] = '\0';
#ifdef STENTOR_ERROR_PLACES
    if (err->file != NULL) {
        (void)snprintf(out, size, "%s:%d", err->file, err->line);
    }
#else
    (void)err;
    (void)size;
#endif
}

const char *error_kind_name(ErrorKind kind)
{
    switch (kind) {
    case ERROR_NONE:
        return "none";
    case ERROR_TRANSIENT:
        return "transient";
    case ERROR_PERMANENT:
        return "permanent";
    case ERROR_CONFLICT:
        return "conflict";
    case ERROR_CONFIG:
        return "config";
    case ERROR_USAGE:
        return "usage";
    case ERROR_CANCELLED:
        return "cancelled";
    }
    return "";
}
