// SPDX-License-Identifier: Apache-2.0
#include "common/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { BUF_FIRST = 256 };

void buf_init(Buf *buf, size_t max_bytes)
{
    assert(max_bytes < SIZE_MAX / 2);
    *buf = (Buf){.max = max_bytes};
}

void buf_done(Buf *buf)
{
    free(buf->ptr);
    *buf = (Buf){.max = buf->max};
}

void buf_clear(Buf *buf)
{
    buf->len = 0;
    buf->full = false;
}

bool buf_reserve(Buf *buf, size_t more)
{
    if (buf->full || more > buf->max - buf->len) {
        buf->full = true;
        return false;
    }
    size_t need = buf->len + more + 1; // one more for the NUL of buf_c and buf_printf
    if (need > buf->cap) {
        size_t cap = buf->cap < BUF_FIRST ? BUF_FIRST : buf->cap * 2;
        cap = cap < need ? need : cap;
        cap = cap > buf->max + 1 ? buf->max + 1 : cap;
        buf->ptr = xrealloc(buf->ptr, cap);
        buf->cap = cap;
    }
    return true;
}

bool buf_append(Buf *buf, const void *data, size_t len)
{
    if (!buf_reserve(buf, len)) {
        return false;
    }
    if (len > 0) {
        memcpy(buf->ptr + buf->len, data, len);
        buf->len += len;
    }
    return true;
}

bool buf_str(Buf *buf, Str s)
{
    return buf_append(buf, s.ptr, s.len);
}

bool buf_cstr(Buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

bool buf_char(Buf *buf, char c)
{
    return buf_append(buf, &c, 1);
}

bool buf_printf(Buf *buf, const char *format, ...)
{
    if (!buf_reserve(buf, 0)) {
        return false;
    }
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    size_t room = buf->cap - buf->len;
    int length = vsnprintf(buf->ptr + buf->len, room, format, args);
    va_end(args);
    bool done = length >= 0 && buf_reserve(buf, (size_t)length);
    if (done && (size_t)length >= room) {
        vsnprintf(buf->ptr + buf->len, (size_t)length + 1, format, again);
    }
    va_end(again);
    buf->len += done ? (size_t)length : 0;
    return done;
}

bool buf_int(Buf *buf, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        *--at = '-';
    }
    return buf_append(buf, at, (size_t)(digits + sizeof digits - at));
}

static void json_escape(Buf *buf, unsigned char c)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *name = names; *name != '\0'; name += 2) {
        if ((unsigned char)name[0] == c) {
            const char pair[2] = {'\\', name[1]};
            buf_append(buf, pair, sizeof pair);
            return;
        }
    }
    buf_printf(buf, "\\u%04x", c);
}

// Bytes at the front of `s` that stand in a JSON string as they are.
static size_t json_plain(Str s)
{
    size_t at = 0;
    while (at < s.len) {
        unsigned char c = (unsigned char)s.ptr[at];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
            break;
        }
        size_t step = c < 0x80 ? 1 : str_utf8_step(str_slice(s, at, s.len));
        if (step == 0) {
            break;
        }
        at += step;
    }
    return at;
}

bool buf_json(Buf *buf, Str s)
{
    size_t before = buf->len;
    buf_char(buf, '"');
    while (s.len > 0 && !buf->full) {
        size_t plain = json_plain(s);
        buf_append(buf, s.ptr, plain);
        s = str_slice(s, plain, s.len);
        if (s.len == 0) {
            break;
        }
        if ((unsigned char)s.ptr[0] < 0x80) {
            json_escape(buf, (unsigned char)s.ptr[0]);
        } else {
            buf_cstr(buf, "\xef\xbf\xbd"); // U+FFFD for each byte that begins no sequence
        }
        s = str_slice(s, 1, s.len);
    }
    if (!buf_char(buf, '"')) {
        buf->len = before;
        return false;
    }
    return true;
}

void buf_drop_front(Buf *buf, size_t count)
{
    assert(count <= buf->len);
    if (count > 0) {
        buf->len -= count;
        memmove(buf->ptr, buf->ptr + count, buf->len);
    }
}

Str buf_view(const Buf *buf)
{
    return str_of(buf->ptr, buf->len);
}

const char *buf_c(Buf *buf)
{
    if (buf->ptr == NULL) {
        return "";
    }
    buf->ptr[buf->len] = '\0';
    return buf->ptr;
}
