// SPDX-License-Identifier: Apache-2.0
// Buf: growing bytes, born with their maximum. An append that would pass the maximum changes
// nothing, returns false and sets `full`, which stays set: append freely, test once at the end.
#pragma once

#include "common/base/str.h"

typedef struct Buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    bool full;
} Buf;

void buf_init(Buf *buf, size_t max_bytes); // allocates nothing yet
void buf_done(Buf *buf);                   // frees; the Buf may be initialised again
void buf_clear(Buf *buf);                  // length 0, full false; keeps the memory
bool buf_append(Buf *buf, const void *data, size_t len);
bool buf_str(Buf *buf, Str s);
bool buf_cstr(Buf *buf, const char *text);
bool buf_char(Buf *buf, char c);
bool buf_printf(Buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool buf_int(Buf *buf, int64_t number);  // in decimal
bool buf_json(Buf *buf, Str s);          // a JSON string with its quotes; bad UTF-8 becomes U+FFFD
bool buf_reserve(Buf *buf, size_t more); // room for `more` bytes at ptr + len
void buf_drop_front(Buf *buf, size_t count); // removes what was consumed
Str buf_view(const Buf *buf);                // valid until the next append
const char *buf_c(Buf *buf);                 // with a NUL after the end
