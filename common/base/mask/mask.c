// SPDX-License-Identifier: Apache-2.0
// Masks of addresses and of passwords in URLs, for logs and for texts of vendors: the only form in
// which recipient data leaves the sealed fields.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mask/mask_number.h"

// What does not fit is left out at the end.
typedef struct Out {
    char *ptr;
    size_t len;
    size_t size;
} Out;

static void put(Out *out, Str s)
{
    size_t room = out->size - out->len - 1;
    size_t length = s.len < room ? s.len : room;
    if (length > 0) {
        memcpy(out->ptr + out->len, s.ptr, length);
    }
    out->len += length;
    out->ptr[out->len] = '\0';
}

static size_t last_at_sign(Str s)
{
    size_t at = s.len;
    while (at > 0 && s.ptr[at - 1] != '@') {
        at--;
    }
    return at == 0 ? s.len : at - 1;
}

// The first three characters, which may be more bytes.
static Str first_three(Str local)
{
    size_t at = 0;
    for (int i = 0; i < 3 && at < local.len; i++) {
        size_t step = str_utf8_step(str_slice(local, at, local.len));
        at += step > 0 ? step : 1;
    }
    return str_slice(local, 0, at);
}

// An incoming URL of a chat service is a secret: nothing behind its begin is shown.
static bool is_url(Str address)
{
    return str_starts(address, STR("https://")) || str_starts(address, STR("http://"));
}

static void put_mask(Out *out, Str address)
{
    size_t at = is_url(address) ? address.len : last_at_sign(address);
    put(out, first_three(str_slice(address, 0, at)));
    put(out, STR("***"));
    put(out, str_slice(address, at, address.len));
}

static Out start(char *out, size_t size)
{
    assert(size > 0);
    out[0] = '\0';
    return (Out){out, 0, size};
}

void mask_address(Str address, char *out, size_t size)
{
    Out to = start(out, size);
    put_mask(&to, address);
}

// RFC 5322's atext and the dot. "=" belongs to it: VERP writes one address into another's local
// part.
static bool is_local(char c)
{
    return ascii_is_alnum(c) || (unsigned char)c >= 0x80 ||
           (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~.", c) != NULL);
}

// Where the local part that ends at `at` begins, not before `from`.
static size_t local_start(Str text, size_t from, size_t at)
{
    size_t start_at = at;
    if (at > from + 1 && text.ptr[at - 1] == '"') {
        for (size_t i = at - 1; i > from; i--) {
            if (text.ptr[i - 1] == '"') {
                return i - 1;
            }
        }
    }
    while (start_at > from && is_local(text.ptr[start_at - 1])) {
        start_at--;
    }
    return start_at;
}

static size_t domain_end(Str text, size_t at)
{
    size_t end = at + 1;
    for (; end < text.len; end++) {
        char c = text.ptr[end];
        bool plain = ascii_is_alnum(c) || (unsigned char)c >= 0x80;
        if (!plain && (c == '\0' || strchr("-.[]:", c) == NULL)) {
            break;
        }
    }
    return end;
}

// Of a part without e-mail addresses.
static void put_without_numbers(Out *out, Str part)
{
    size_t done = 0, begin = 0, end = 0;
    while (mask_next_number(part, done, &begin, &end)) {
        put(out, str_slice(part, done, begin));
        put_mask(out, str_slice(part, begin, end));
        done = end;
    }
    put(out, str_slice(part, done, part.len));
}

void mask_addresses(Str text, char *out, size_t size)
{
    Out to = start(out, size);
    size_t done = 0;
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] != '@') {
            continue;
        }
        size_t begin = local_start(text, done, at), first = at;
        while (at + 1 < text.len && text.ptr[at + 1] == '@') {
            at++; // "bob@@example.com": a vendor's text is often about an address that is none
        }
        size_t end = domain_end(text, at);
        if (begin == first || end == at + 1) {
            continue;
        }
        put_without_numbers(&to, str_slice(text, done, begin));
        put_mask(&to, str_slice(text, begin, end));
        done = end;
        at = end - 1;
    }
    put_without_numbers(&to, str_slice(text, done, text.len));
}

// How much of one URL stands before its user: the scheme. A text that is no URL gets its own
// length.
static size_t user_start(Str url, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (str_starts(str_slice(url, i, url.len), STR("://"))) {
            return i + 3;
        }
    }
    bool has_password =
        str_find(str_slice(url, 0, at), ':') > 0; // user:password@host will do for NATS
    return has_password ? 0 : url.len;
}

// To the last '@' before a comma: a password may have any other character in it.
void mask_urls(Str urls, Buf *out)
{
    Str one;
    bool first = true;
    while (str_split(&urls, ',', &one)) {
        buf_cstr(out, first ? "" : ",");
        first = false;
        size_t at = last_at_sign(one);
        size_t begin = user_start(one, at);
        if (at < one.len && begin < at) {
            buf_str(out, str_slice(one, 0, begin));
            buf_cstr(out, "***");
            one = str_slice(one, at, one.len);
        }
        buf_str(out, one);
    }
}
