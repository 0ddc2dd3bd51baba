// SPDX-License-Identifier: Apache-2.0
#include "common/mime/mime_encode.h"

#include <string.h>

enum {
    QP_COLUMN_MAX = MIME_LINE_MAX - 1, // one column is kept for the '=' of a soft line break
    SEVEN_BIT_LINE_MAX = 78,           // RFC 5322 2.1.1
    WORD_BYTES_MAX = 45,               // of one encoded word: 60 characters of base64
    WORD_AROUND = 12,                  // and "=?UTF-8?B?" "?=" around them
    // A line has at most 998 bytes (RFC 5322 2.1.1), and the header's name may stand in it too.
    HEADER_WORD_MAX = 900,
    DISPLAY_NAME_MAX = 256,
};

static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char HEX[] = "0123456789ABCDEF";

// Bytes that quoted-printable may leave as they are: printable ASCII but '=', and space and tab
// inside a line.
static bool is_literal(uint8_t c)
{
    static const uint8_t low[32] = {['\t'] = 1};
    if (c < 32) {
        return low[c] != 0;
    }
    return c < 127 && c != '=';
}

static size_t count_high(Str text)
{
    size_t count = 0;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t word;
        memcpy(&word, text.ptr + i, 8);
        word = (word >> 7) & 0x0101010101010101u;
        count += (size_t)((word * 0x0101010101010101u) >> 56);
    }
    for (; i < text.len; i++) {
        count += (uint8_t)text.ptr[i] >> 7;
    }
    return count;
}

// Cuts the next line off *rest, without its LF or CRLF; *ret_ended: it had one.
static bool next_line(Str *rest, Str *ret_line, bool *ret_ended)
{
    if (rest->len == 0) {
        return false;
    }
    const char *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    *ret_ended = end != NULL;
    *ret_line = (Str){rest->ptr, len};
    size_t used = len + (end != NULL ? 1 : 0);
    *rest = (Str){rest->ptr + used, rest->len - used};
    if (*ret_ended && len > 0 && ret_line->ptr[len - 1] == '\r') {
        ret_line->len--;
    }
    return true;
}

static bool is_plain_line(Str line)
{
    for (size_t i = 0; i < line.len; i++) {
        uint8_t c = (uint8_t)line.ptr[i];
        if (c != '=' && !is_literal(c)) {
            return false;
        }
    }
    return true;
}

static bool fits_7bit(Str text)
{
    Str line;
    bool ended;
    while (next_line(&text, &line, &ended)) {
        // "--=_" begins our boundaries; with it in the text they would not be unique.
        if (line.len > SEVEN_BIT_LINE_MAX || !is_plain_line(line) ||
            str_starts(line, STR("--=_"))) {
            return false;
        }
    }
    return true;
}

MimeEncoding mime_choose(Str text)
{
    size_t high = count_high(text);
    if (high > text.len / 6) {
        return MIME_BASE64;
    }
    return high == 0 && fits_7bit(text) ? MIME_7BIT : MIME_QUOTED_PRINTABLE;
}

const char *mime_encoding_name(MimeEncoding encoding)
{
    switch (encoding) {
    case MIME_7BIT:
        return "7bit";
    case MIME_QUOTED_PRINTABLE:
        return "quoted-printable";
    case MIME_BASE64:
        return "base64";
    }
    return "";
}

// ---- bodies ----

static char *put_crlf(char *out)
{
    out[0] = '\r';
    out[1] = '\n';
    return out + 2;
}

static char *put_qp_line(char *out, const char *p, const char *end)
{
    // White space at the end of a line is lost on the way unless it is escaped.
    const char *literal_end = end > p && (end[-1] == ' ' || end[-1] == '\t') ? end - 1 : end;
    size_t column = 0;
    while (p < end) {
        size_t room = QP_COLUMN_MAX - column;
        const char *limit = (size_t)(literal_end - p) < room ? literal_end : p + room;
        const char *run = p;
        while (p < limit && is_literal((uint8_t)*p)) {
            p++;
        }
        memcpy(out, run, (size_t)(p - run));
        out += p - run;
        column += (size_t)(p - run);
        if (p == end) {
            break;
        }
        if ((p == limit && p != literal_end) || column + 3 > QP_COLUMN_MAX) {
            *out = '=';
            out = put_crlf(out + 1);
            column = 0;
        } else {
            *out++ = '=';
            *out++ = HEX[(uint8_t)*p >> 4];
            *out++ = HEX[(uint8_t)*p++ & 15];
            column += 3;
        }
    }
    return out;
}

static bool quoted_printable(Str text, Buf *out)
{
    // At worst every byte becomes three, with a soft break after each 25th.
    if (!buf_reserve(out, text.len * 4 + 16)) {
        out->full = true;
        return false;
    }
    char *at = out->ptr + out->len;
    Str line;
    bool ended;
    while (next_line(&text, &line, &ended)) {
        at = put_qp_line(at, line.ptr, line.ptr + line.len);
        if (ended) {
            at = put_crlf(at);
        }
    }
    out->len = (size_t)(at - out->ptr);
    return true;
}

static bool seven_bit(Str text, Buf *out)
{
    Str line;
    bool ended;
    while (next_line(&text, &line, &ended)) {
        buf_str(out, line);
        if (ended) {
            buf_str(out, STR("\r\n"));
        }
    }
    return !out->full;
}

static char *put_base64(char *out, const uint8_t *in, size_t len)
{
    for (; len >= 3; in += 3, len -= 3) {
        uint32_t word = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *out++ = BASE64[word >> 18];
        *out++ = BASE64[word >> 12 & 63];
        *out++ = BASE64[word >> 6 & 63];
        *out++ = BASE64[word & 63];
    }
    if (len > 0) {
        uint32_t word = (uint32_t)in[0] << 16 | (len == 2 ? (uint32_t)in[1] << 8 : 0);
        *out++ = BASE64[word >> 18];
        *out++ = BASE64[word >> 12 & 63];
        *out++ = len == 2 ? BASE64[word >> 6 & 63] : '=';
        *out++ = '=';
    }
    return out;
}

bool mime_base64(Str data, Buf *out)
{
    if (!buf_reserve(out, (data.len + 2) / 3 * 4)) {
        out->full = true;
        return false;
    }
    out->len =
        (size_t)(put_base64(out->ptr + out->len, (const uint8_t *)data.ptr, data.len) - out->ptr);
    return true;
}

bool mime_base64_lines(Str bytes, Buf *out)
{
    const size_t per_line = MIME_LINE_MAX / 4 * 3;
    if (!buf_reserve(out, (bytes.len / per_line + 1) * (MIME_LINE_MAX + 2))) {
        out->full = true;
        return false;
    }
    char *at = out->ptr + out->len;
    for (size_t i = 0; i < bytes.len; i += per_line) {
        size_t len = bytes.len - i < per_line ? bytes.len - i : per_line;
        at = put_crlf(put_base64(at, (const uint8_t *)bytes.ptr + i, len));
    }
    out->len = (size_t)(at - out->ptr);
    return true;
}

static bool base64_lines(Str text, Buf *out)
{
    Buf canonical; // base64 carries bytes, so the line breaks must be CRLF before it
    buf_init(&canonical, text.len * 2 + 2);
    bool fine = seven_bit(text, &canonical);
    Str rest = buf_view(&canonical);
    while (fine && rest.len > 0) {
        Str line = str_slice(rest, 0, MIME_LINE_MAX / 4 * 3);
        fine = mime_base64(line, out) && buf_str(out, STR("\r\n"));
        rest = str_slice(rest, line.len, rest.len);
    }
    buf_done(&canonical);
    return fine;
}

bool mime_encode(MimeEncoding encoding, Str text, Buf *out)
{
    switch (encoding) {
    case MIME_7BIT:
        return seven_bit(text, out);
    case MIME_QUOTED_PRINTABLE:
        return quoted_printable(text, out);
    case MIME_BASE64:
        return base64_lines(text, out);
    }
    return false;
}

// ---- headers ----

static bool check_value(const char *name, Str value, Error *err)
{
    if (str_find(value, '\r') >= 0 || str_find(value, '\n') >= 0) {
        return error_set(err, ERROR_PERMANENT, "header '%s' has a line break", name);
    }
    if (str_has_control(value)) {
        return error_set(err, ERROR_PERMANENT, "header '%s' has a control character", name);
    }
    if (!str_is_utf8(value)) {
        return error_set(err, ERROR_PERMANENT, "header '%s' is not UTF-8", name);
    }
    return true;
}

// As long a piece of `text` as fits `max` bytes, not cutting a character.
static Str word_piece(Str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    size_t len = max;
    while (((uint8_t)text.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    return str_slice(text, 0, len);
}

// Each word on its own line: the white space between two encoded words is not part of the text (RFC
// 2047 6.2).
static bool encoded_words(Str text, size_t column, Buf *out)
{
    size_t room = (MIME_LINE_MAX - WORD_AROUND - column) / 4 *
                  3; // of the first: it stands behind the header's name
    while (text.len > 0) {
        Str piece = word_piece(text, room);
        buf_str(out, STR("=?UTF-8?B?"));
        mime_base64(piece, out);
        text = str_slice(text, piece.len, text.len);
        buf_str(out, text.len > 0 ? STR("?=\r\n ") : STR("?="));
        room = WORD_BYTES_MAX;
    }
    return !out->full;
}

// ASCII that can stand in a header as it is: no word that reads as an encoded one, and none that is
// too long for a line together with the spaces before it.
static bool is_foldable(Str text)
{
    size_t word = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool begins = text.ptr[i] == ' ' && i > 0 && text.ptr[i - 1] != ' ';
        bool like_a_word = text.ptr[i] == '=' && i + 1 < text.len && text.ptr[i + 1] == '?';
        word = begins ? 1 : word + 1;
        if ((uint8_t)text.ptr[i] >= 0x80 || like_a_word || word > HEADER_WORD_MAX) {
            return false;
        }
    }
    return true;
}

// A line ends before the spaces in front of a word, so no line is all spaces. `text` neither begins
// nor ends with one.
static bool folded(Str text, size_t column, Buf *out)
{
    for (size_t at = 0; at < text.len;) {
        size_t end = at;
        while (end < text.len && text.ptr[end] == ' ') {
            end++;
        }
        while (end < text.len && text.ptr[end] != ' ') {
            end++;
        }
        if (at > 0 && column + (end - at) > MIME_LINE_MAX) {
            buf_str(out, STR("\r\n"));
            column = 0;
        }
        buf_append(out, text.ptr + at, end - at);
        column += end - at;
        at = end;
    }
    return !out->full;
}

bool mime_header_plain(const char *name, const char *value, Buf *out)
{
    buf_cstr(out, name);
    buf_str(out, STR(": "));
    buf_cstr(out, value);
    return buf_str(out, STR("\r\n"));
}

bool mime_header_text(const char *name, Str value, Buf *out, Error *err)
{
    if (!check_value(name, value, err)) {
        return false;
    }
    size_t column = strlen(name) + 2;
    value = str_trim(value); // a reader drops them; without them no line is all spaces
    buf_cstr(out, name);
    buf_str(out, STR(": "));
    if (is_foldable(value)) {
        folded(value, column, out);
    } else {
        encoded_words(value, column, out);
    }
    buf_str(out, STR("\r\n"));
    return true;
}

static void quoted_string(Str text, Buf *out)
{
    buf_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\') {
            buf_char(out, '\\');
        }
        buf_char(out, text.ptr[i]);
    }
    buf_char(out, '"');
}

// Names are checked at the API; from names accepted before that check, characters that change the
// direction of writing are removed.
static Str without_bidi(Str text, char out[DISPLAY_NAME_MAX])
{
    size_t len = 0;
    if (!str_has_bidi(text)) {
        return text;
    }
    for (size_t at = 0; at < text.len;) {
        size_t skipped = str_bidi_step(str_slice(text, at, text.len));
        if (skipped == 0) {
            out[len++] = text.ptr[at];
        }
        at += skipped > 0 ? skipped : 1;
    }
    return str_of(out, len);
}

bool mime_mailbox(const char *name, Str display, Str address, Buf *out, Error *err)
{
    char kept[DISPLAY_NAME_MAX];
    if (!check_value(name, display, err)) {
        return false;
    }
    if (display.len > DISPLAY_NAME_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "header '%s' has a name longer than %d bytes", name,
            (int)DISPLAY_NAME_MAX);
    }
    display = without_bidi(display, kept);
    if (display.len > 0) {
        if (count_high(display) == 0) {
            quoted_string(display, out);
        } else {
            encoded_words(display, strlen(name) + 2, out);
        }
        // Its own line: name and address together may be too long for one.
        buf_str(out, strlen(name) + display.len + address.len > 60 ? STR("\r\n ") : STR(" "));
    }
    buf_char(out, '<');
    buf_str(out, address);
    buf_char(out, '>');
    return true;
}

bool mime_header_mailbox(const char *name, Str display, Str address, Buf *out, Error *err)
{
    buf_cstr(out, name);
    buf_str(out, STR(": "));
    if (!mime_mailbox(name, display, address, out, err)) {
        return false;
    }
    buf_str(out, STR("\r\n"));
    return true;
}
