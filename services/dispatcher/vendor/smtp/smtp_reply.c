// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/smtp/smtp_reply.h"

#include <string.h>

#include "common/base/log.h"

void smtp_reply_init(SmtpReplyParser *parser)
{
    parser->lines = 0;
    parser->line_len = 0;
    parser->reply.code = 0;
    parser->reply.text_len = 0;
    parser->reply.enhanced[0] = '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Length of "class.subject.detail" at the beginning of `text`, 0 when there is none (RFC 3463 2).
static size_t enhanced_length(Str text)
{
    if (text.len < 5 || (text.ptr[0] != '2' && text.ptr[0] != '4' && text.ptr[0] != '5') ||
        text.ptr[1] != '.') {
        return 0;
    }
    size_t at = 2;
    for (int part = 0; part < 2; part++) {
        size_t digits = 0;
        while (at < text.len && is_digit(text.ptr[at]) && digits < 3) {
            at++;
            digits++;
        }
        bool dot = part == 0 && at < text.len && text.ptr[at] == '.';
        if (digits == 0 || (part == 0 && !dot)) {
            return 0;
        }
        at += dot ? 1 : 0;
    }
    return at == text.len || text.ptr[at] == ' ' ? at : 0;
}

static void add_text(SmtpReply *reply, Str text)
{
    size_t enhanced = enhanced_length(text);
    if (enhanced > 0) {
        if (reply->enhanced[0] == '\0') {
            (void)str_to_c(str_slice(text, 0, enhanced), reply->enhanced, sizeof reply->enhanced);
        }
        text = str_trim(str_slice(text, enhanced, text.len));
    }
    if (reply->text_len > 0 && reply->text_len < SMTP_TEXT_MAX) {
        reply->text[reply->text_len++] = '\n';
    }
    text = str_slice(text, 0, SMTP_TEXT_MAX - reply->text_len);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        reply->text[reply->text_len++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
}

static SmtpFeed parse_line(SmtpReplyParser *parser, Str line, Error *err)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    bool coded = line.len >= 3 && line.ptr[0] >= '2' && line.ptr[0] <= '5' &&
                 is_digit(line.ptr[1]) && is_digit(line.ptr[2]) &&
                 (line.len == 3 || line.ptr[3] == ' ' || line.ptr[3] == '-');
    if (!coded) {
        error_set(err, ERROR_TRANSIENT, "the server's line is not an smtp reply");
        return SMTP_FEED_BAD;
    }
    int code = (line.ptr[0] - '0') * 100 + (line.ptr[1] - '0') * 10 + (line.ptr[2] - '0');
    if (parser->lines > 0 && code != parser->reply.code) {
        error_set(
            err, ERROR_TRANSIENT, "the server's reply changes from %d to %d", parser->reply.code,
            code);
        return SMTP_FEED_BAD;
    }
    if (++parser->lines > SMTP_LINES_MAX) {
        error_set(
            err, ERROR_TRANSIENT, "the server's reply has more than %d lines", (int)SMTP_LINES_MAX);
        return SMTP_FEED_BAD;
    }
    parser->reply.code = code;
    add_text(&parser->reply, str_slice(line, 4, line.len));
    bool more = line.len > 3 && line.ptr[3] == '-';
    if (!more) {
        parser->lines = 0;
    }
    return more ? SMTP_FEED_MORE : SMTP_FEED_REPLY;
}

// Keeps the beginning of a line until its end arrives.
static bool keep(SmtpReplyParser *parser, Str piece, Error *err)
{
    if (piece.len > SMTP_LINE_MAX - parser->line_len) {
        return error_set(
            err, ERROR_TRANSIENT, "the server's line is longer than %d bytes", (int)SMTP_LINE_MAX);
    }
    memcpy(parser->line + parser->line_len, piece.ptr, piece.len);
    parser->line_len += piece.len;
    return true;
}

SmtpFeed smtp_reply_feed(SmtpReplyParser *parser, Str *input, Error *err)
{
    if (parser->lines == 0 && parser->line_len == 0) {
        smtp_reply_init(parser);
    }
    while (input->len > 0) {
        ptrdiff_t end = str_find(*input, '\n');
        Str piece = end < 0 ? *input : str_slice(*input, 0, (size_t)end);
        *input = str_slice(*input, piece.len + (end < 0 ? 0 : 1), input->len);
        bool whole = end >= 0 && parser->line_len == 0 && piece.len <= SMTP_LINE_MAX;
        if (!whole && !keep(parser, piece, err)) {
            return SMTP_FEED_BAD;
        }
        if (end < 0) {
            break;
        }
        Str line = whole ? piece : (Str){parser->line, parser->line_len};
        parser->line_len = 0;
        if (parser->lines == 0) {
            smtp_reply_init(parser); // several replies may stand in one input
        }
        SmtpFeed fed = parse_line(parser, line, err);
        if (fed != SMTP_FEED_MORE) {
            return fed;
        }
    }
    return SMTP_FEED_MORE;
}

Str smtp_reply_text(const SmtpReply *reply)
{
    return (Str){reply->text, reply->text_len};
}

void smtp_reply_clean(const SmtpReply *reply, char *out, size_t size)
{
    mask_addresses(smtp_reply_text(reply), out, size);
    // After masking, which may have cut a character at the end of `out`.
    bool utf8 = str_is_utf8(str_from(out));
    for (size_t i = 0; out[i] != '\0'; i++) {
        uint8_t c = (uint8_t)out[i];
        if (c == '\n') {
            out[i] = ' ';
        } else if (c >= 0x80 && !utf8) {
            out[i] = '?';
        }
    }
}

ReplyClass smtp_classify(int code, Str enhanced)
{
    static const int about_the_session[] = {500, 502, 503, 530, 534, 535, 538};
    if (str_eq(enhanced, STR("5.6.7"))) {
        return REPLY_BAD_ADDRESS;
    }
    for (size_t i = 0; i < sizeof about_the_session / sizeof *about_the_session; i++) {
        bool says_address = str_starts(enhanced, STR("5.1."));
        if (code == about_the_session[i] && !says_address) {
            return REPLY_RETRY;
        }
    }
    return reply_classify(code, enhanced);
}

static void parse_cap(SmtpCaps *caps, Str line)
{
    Str rest = str_trim(line);
    Str word = STR_EMPTY;
    if (!str_split(&rest, ' ', &word)) {
        return;
    }
    int64_t size;
    caps->pipelining |= str_eq_nocase(word, STR("PIPELINING"));
    caps->starttls |= str_eq_nocase(word, STR("STARTTLS"));
    caps->smtputf8 |= str_eq_nocase(word, STR("SMTPUTF8"));
    caps->eightbitmime |= str_eq_nocase(word, STR("8BITMIME"));
    caps->dsn |= str_eq_nocase(word, STR("DSN"));
    if (str_eq_nocase(word, STR("SIZE")) && str_to_i64(str_trim(rest), &size) && size > 0) {
        caps->size_max = (uint64_t)size;
    }
    bool auth = str_eq_nocase(word, STR("AUTH"));
    while (auth && str_split(&rest, ' ', &word)) {
        caps->auth_plain |= str_eq_nocase(word, STR("PLAIN"));
        caps->auth_login |= str_eq_nocase(word, STR("LOGIN"));
    }
}

SmtpCaps smtp_caps_parse(const SmtpReply *reply)
{
    SmtpCaps caps = {0};
    Str rest = smtp_reply_text(reply);
    Str line;
    (void)str_split(&rest, '\n', &line); // the first line is the greeting
    while (str_split(&rest, '\n', &line)) {
        parse_cap(&caps, line);
    }
    return caps;
}
