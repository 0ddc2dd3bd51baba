// SPDX-License-Identifier: Apache-2.0
#include "common/http/chunked.h"

enum { DIGITS_MAX = 8, EXTRA_MAX = 8 * 1024 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_text(char c)
{
    return c == '\t' || (unsigned char)c >= 0x20;
}

static bool take_size(Chunked *chunked, char c)
{
    int digit = hex_digit(c);
    if (digit >= 0) {
        chunked->left = chunked->left * 16 + (unsigned)digit;
        chunked->state = CHUNKED_SIZE_MORE;
        return ++chunked->digits <= DIGITS_MAX;
    }
    if (chunked->digits == 0 || (c != ';' && c != '\r')) {
        return false;
    }
    chunked->state = c == ';' ? CHUNKED_EXTENSION : CHUNKED_SIZE_LF;
    return true;
}

static void end_size(Chunked *chunked)
{
    chunked->state = chunked->left > 0 ? CHUNKED_DATA : CHUNKED_LINE;
    chunked->digits = 0;
}

// An extension or a trailer: text up to its CR.
static bool take_extra(Chunked *chunked, char c, ChunkedState after)
{
    if (c == '\r') {
        chunked->state = after;
        return true;
    }
    return is_text(c) && ++chunked->extra <= EXTRA_MAX;
}

static bool move_on(Chunked *chunked, char c, char wanted, ChunkedState next)
{
    chunked->state = next;
    return c == wanted;
}

// One byte that is not data. *ret_end: it was the last one of the body.
static bool take_byte(Chunked *chunked, char c, bool *ret_end)
{
    switch (chunked->state) {
    case CHUNKED_SIZE:
    case CHUNKED_SIZE_MORE:
        return take_size(chunked, c);
    case CHUNKED_EXTENSION:
        return take_extra(chunked, c, CHUNKED_SIZE_LF);
    case CHUNKED_SIZE_LF:
        end_size(chunked);
        return c == '\n';
    case CHUNKED_DATA_CR:
        return move_on(chunked, c, '\r', CHUNKED_DATA_LF);
    case CHUNKED_DATA_LF:
        return move_on(chunked, c, '\n', CHUNKED_SIZE);
    case CHUNKED_LINE:
        chunked->state = c == '\r' ? CHUNKED_END_LF : CHUNKED_TRAILER;
        return c == '\r' || (is_text(c) && c != ' ' && c != '\t');
    case CHUNKED_TRAILER:
        return take_extra(chunked, c, CHUNKED_TRAILER_LF);
    case CHUNKED_TRAILER_LF:
        return move_on(chunked, c, '\n', CHUNKED_LINE);
    case CHUNKED_END_LF:
        *ret_end = true;
        return c == '\n';
    case CHUNKED_DATA:
        break;
    }
    return false;
}

static void take_data(Chunked *chunked, Str *rest, Str *ret_data)
{
    size_t len = rest->len < chunked->left ? rest->len : (size_t)chunked->left;
    *ret_data = str_slice(*rest, 0, len);
    *rest = str_slice(*rest, len, rest->len);
    chunked->left -= len;
    if (chunked->left == 0) {
        chunked->state = CHUNKED_DATA_CR;
    }
}

ChunkedResult chunked_take(Chunked *chunked, Str *rest, Str *ret_data)
{
    bool end = false;
    while (rest->len > 0) {
        if (chunked->state == CHUNKED_DATA) {
            take_data(chunked, rest, ret_data);
            return CHUNKED_IS_DATA;
        }
        char c = rest->ptr[0];
        *rest = str_slice(*rest, 1, rest->len);
        if (!take_byte(chunked, c, &end)) {
            return CHUNKED_IS_BAD;
        }
        if (end) {
            return CHUNKED_IS_END;
        }
    }
    return CHUNKED_NEEDS_MORE;
}
