// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/lmtp/lmtp_session.h"

#include <assert.h>
#include <string.h>

enum { REPLY_MAX = 510 };

static void reply(LmtpSession *s, const char *text)
{
    Str line = str_slice(str_from(text), 0, REPLY_MAX);
    (void)buf_str(&s->out, line);
    (void)buf_cstr(&s->out, "\r\n");
}

// ---- life ----

void lmtp_init(LmtpSession *s, const char *host, const LmtpLimits *limits)
{
    memset(s, 0, sizeof *s);
    s->limits = *limits;
    s->host = host;
    s->arena = arena_new(0);
    buf_init(&s->out, LMTP_OUT_MAX);
    buf_init(&s->mail, limits->kept_max);
    (void)buf_printf(&s->out, "220 %s LMTP Stentor\r\n", host);
}

void lmtp_done(LmtpSession *s)
{
    buf_done(&s->out);
    buf_done(&s->mail);
    arena_free(s->arena);
}

// No mail is in hand; its memory goes back.
static void forget_mail(LmtpSession *s)
{
    arena_reset(s->arena);
    buf_done(&s->mail);
    buf_init(&s->mail, s->limits.kept_max);
    s->size = 0;
    s->recipient_count = 0;
    s->replied = 0;
    s->state = LMTP_READY;
}

void lmtp_end(LmtpSession *s, const char *text)
{
    reply(s, text);
    s->state = LMTP_ENDED;
}

static void refuse(LmtpSession *s, const char *text)
{
    if (++s->errors >= LMTP_ERRORS_MAX) {
        lmtp_end(s, "421 4.7.0 too many commands were refused");
    } else {
        reply(s, text);
    }
}

// ---- paths ----

// "<local@domain>" at the beginning of *rest, which goes behind it. A quoted local part may hold
// '>'. A source route ("@relay:") is left out (RFC 5321, appendix C).
static bool take_path(Str *rest, Str *ret)
{
    if (rest->len == 0 || rest->ptr[0] != '<') {
        return false;
    }
    bool quoted = false;
    size_t at = 1;
    for (; at < rest->len && (quoted || rest->ptr[at] != '>'); at++) {
        quoted = rest->ptr[at] == '"' ? !quoted : quoted;
        at += quoted && rest->ptr[at] == '\\' ? 1 : 0;
    }
    if (at >= rest->len || at > LMTP_ADDRESS_MAX) {
        return false;
    }
    Str path = str_slice(*rest, 1, at);
    *rest = str_slice(*rest, at + 1, rest->len);
    if (path.len > 0 && path.ptr[0] == '@') {
        ptrdiff_t colon = str_find(path, ':');
        path = colon < 0 ? path : str_slice(path, (size_t)colon + 1, path.len);
    }
    *ret = path;
    return !str_has_control(path) && (rest->len == 0 || rest->ptr[0] == ' ');
}

static bool is_known_parameter(Str word)
{
    static const char *const NAMES[] = {"BODY=", "SMTPUTF8", "AUTH=", NULL};
    for (size_t i = 0; NAMES[i] != NULL; i++) {
        Str name = str_from(NAMES[i]);
        if (str_eq_nocase(str_slice(word, 0, name.len), name)) {
            return true;
        }
    }
    return false;
}

// NULL: they are in order. `rest` stands behind the path.
static const char *check_parameters(const LmtpSession *s, Str rest)
{
    Str word = STR_EMPTY;
    while (str_split(&rest, ' ', &word)) {
        int64_t size = 0;
        if (str_eq_nocase(str_slice(word, 0, 5), STR("SIZE="))) {
            if (!str_to_i64(str_slice(word, 5, word.len), &size) || size < 0) {
                return "501 5.5.4 'SIZE' is not a number";
            }
            if ((uint64_t)size > s->limits.mail_max) {
                return "552 5.3.4 the mail is too large";
            }
        } else if (word.len > 0 && !is_known_parameter(word)) {
            return "555 5.5.4 this parameter is not known here";
        }
    }
    return NULL;
}

// ---- commands ----

static LmtpStep do_lhlo(LmtpSession *s, Str rest)
{
    if (str_trim(rest).len == 0) {
        refuse(s, "501 5.5.4 LHLO needs the client's name");
        return LMTP_MORE;
    }
    forget_mail(s);
    (void)buf_printf(
        &s->out,
        "250-%s\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n"
        "250 SIZE %zu\r\n",
        s->host, s->limits.mail_max);
    return LMTP_MORE;
}

static LmtpStep do_mail(LmtpSession *s, Str rest)
{
    Str sender = STR_EMPTY;
    rest = str_trim(rest);
    bool good = str_eq_nocase(str_slice(rest, 0, 5), STR("FROM:"));
    rest = str_trim(str_slice(rest, 5, rest.len));
    const char *why = NULL;
    if (s->state != LMTP_READY) {
        refuse(s, "503 5.5.1 MAIL is in order after LHLO, and once a mail");
    } else if (!good || !take_path(&rest, &sender)) {
        refuse(s, "501 5.1.7 expected MAIL FROM:<address>");
    } else if ((why = check_parameters(s, rest)) != NULL) {
        refuse(s, why);
    } else {
        forget_mail(s);
        s->state = LMTP_ENVELOPE;
        reply(s, "250 2.1.0 ok");
    }
    return LMTP_MORE;
}

static LmtpStep do_rcpt(LmtpSession *s, Str rest)
{
    Str address = STR_EMPTY;
    rest = str_trim(rest);
    bool good = str_eq_nocase(str_slice(rest, 0, 3), STR("TO:"));
    rest = str_trim(str_slice(rest, 3, rest.len));
    if (s->state != LMTP_ENVELOPE) {
        refuse(s, "503 5.5.1 RCPT is in order after MAIL");
    } else if (!good || !take_path(&rest, &address) || address.len == 0) {
        refuse(s, "501 5.1.3 expected RCPT TO:<address>");
    } else if (str_trim(rest).len > 0) {
        refuse(s, "555 5.5.4 RCPT has no parameters here");
    } else if (s->recipient_count >= LMTP_RECIPIENTS_MAX) {
        reply(s, "452 4.5.3 too many recipients; send the mail to the others by itself");
    } else {
        s->address = arena_str(s->arena, address);
        return LMTP_RECIPIENT;
    }
    return LMTP_MORE;
}

void lmtp_recipient(LmtpSession *s, const char *refusal, void *user)
{
    assert(s->state == LMTP_ENVELOPE && s->recipient_count < LMTP_RECIPIENTS_MAX);
    if (refusal != NULL) {
        refuse(s, refusal);
        return;
    }
    s->recipients[s->recipient_count] = s->address;
    s->users[s->recipient_count++] = user;
    reply(s, "250 2.1.5 ok");
}

static LmtpStep do_data(LmtpSession *s, Str rest)
{
    if (str_trim(rest).len > 0) {
        refuse(s, "501 5.5.4 DATA has no parameters");
    } else if (s->state != LMTP_ENVELOPE || s->recipient_count == 0) {
        refuse(s, "503 5.5.1 DATA is in order after an accepted recipient");
    } else {
        s->state = LMTP_DATA;
        s->dot = LMTP_DOT_START;
        reply(s, "354 end with a dot on a line by itself");
    }
    return LMTP_MORE;
}

static LmtpStep do_rset(LmtpSession *s, Str rest)
{
    (void)rest;
    if (s->state != LMTP_GREETED) {
        forget_mail(s);
    }
    reply(s, "250 2.0.0 ok");
    return LMTP_MORE;
}

static LmtpStep do_noop(LmtpSession *s, Str rest)
{
    (void)rest;
    reply(s, "250 2.0.0 ok");
    return LMTP_MORE;
}

static LmtpStep do_vrfy(LmtpSession *s, Str rest)
{
    (void)rest;
    refuse(s, "252 2.5.0 RCPT says whether mail is taken");
    return LMTP_MORE;
}

static LmtpStep do_quit(LmtpSession *s, Str rest)
{
    (void)rest;
    lmtp_end(s, "221 2.0.0 bye");
    return LMTP_END;
}

typedef struct Command {
    const char *name;
    LmtpStep (*run)(LmtpSession *s, Str rest);
} Command;

static const Command COMMANDS[] = {
    {"LHLO", do_lhlo}, {"MAIL", do_mail}, {"RCPT", do_rcpt}, {"DATA", do_data},
    {"RSET", do_rset}, {"NOOP", do_noop}, {"VRFY", do_vrfy}, {"QUIT", do_quit},
};

static LmtpStep run_line(LmtpSession *s, Str line)
{
    Str rest = line;
    Str name = STR_EMPTY;
    if (!str_is_utf8(line) || !str_split(&rest, ' ', &name)) {
        refuse(s, "500 5.5.2 this is no command");
        return LMTP_MORE;
    }
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++) {
        if (str_eq_nocase(name, str_from(COMMANDS[i].name))) {
            return COMMANDS[i].run(s, rest);
        }
    }
    refuse(s, "500 5.5.1 this command is not known: LMTP begins with LHLO");
    return LMTP_MORE;
}

// Consumes up to the end of a command line.
static LmtpStep feed_command(LmtpSession *s, Str *input)
{
    ptrdiff_t end = str_find(*input, '\n');
    Str piece = end < 0 ? *input : str_slice(*input, 0, (size_t)end + 1);
    *input = str_slice(*input, piece.len, input->len);
    if (piece.len > sizeof s->line - s->line_len) {
        s->line_too_long = true;
    }
    if (!s->line_too_long) {
        memcpy(s->line + s->line_len, piece.ptr, piece.len);
        s->line_len += piece.len;
    }
    if (end < 0) {
        return LMTP_MORE;
    }
    Str line = {s->line, s->line_len};
    bool too_long = s->line_too_long;
    s->line_len = 0;
    s->line_too_long = false;
    if (too_long) {
        refuse(s, "500 5.5.2 the line is too long");
        return LMTP_MORE;
    }
    line = str_ends(line, STR("\r\n")) ? str_slice(line, 0, line.len - 2)
                                       : str_slice(line, 0, line.len - 1);
    return run_line(s, line);
}

// ---- a mail ----

// What is behind kept_max is counted and left out.
static void keep(LmtpSession *s, const char *bytes, size_t len)
{
    size_t room = s->limits.kept_max - s->mail.len;
    (void)buf_append(&s->mail, bytes, len < room ? len : room);
    s->size += len;
}

static LmtpDot next_dot(LmtpDot dot, char c)
{
    switch (dot) {
    case LMTP_DOT_TEXT:
        return c == '\r' ? LMTP_DOT_CR : LMTP_DOT_TEXT;
    case LMTP_DOT_CR:
        return c == '\n' ? LMTP_DOT_START : c == '\r' ? LMTP_DOT_CR : LMTP_DOT_TEXT;
    case LMTP_DOT_START:
        return c == '.' ? LMTP_DOT_DOT : c == '\r' ? LMTP_DOT_CR : LMTP_DOT_TEXT;
    case LMTP_DOT_DOT:
        return c == '\r' ? LMTP_DOT_DOT_CR : LMTP_DOT_TEXT;
    case LMTP_DOT_DOT_CR:
        return c == '\r' ? LMTP_DOT_CR : LMTP_DOT_TEXT;
    }
    return LMTP_DOT_TEXT;
}

static LmtpStep finish_mail(LmtpSession *s)
{
    s->state = LMTP_REPLYING;
    if (s->size <= s->limits.mail_max) {
        return LMTP_MAIL;
    }
    for (size_t left = s->recipient_count; left > 0; left--) {
        lmtp_reply(s, "552 5.3.4 the mail is too large");
    }
    return LMTP_MORE;
}

// A dot at the start of a line is left out, unless it and the CR LF behind it end the mail: then
// both are.
static LmtpStep feed_data(LmtpSession *s, Str *input)
{
    size_t kept = 0; // input before it is kept already
    for (size_t i = 0; i < input->len; i++) {
        char c = input->ptr[i];
        if (s->dot == LMTP_DOT_DOT_CR && c == '\n') {
            *input = str_slice(*input, i + 1, input->len);
            return finish_mail(s);
        }
        LmtpDot next = next_dot(s->dot, c);
        if (next == LMTP_DOT_DOT || next == LMTP_DOT_DOT_CR) {
            keep(s, input->ptr + kept, i - kept);
            kept = i + 1;
        } else if (s->dot == LMTP_DOT_DOT_CR) { // that CR was text
            keep(s, "\r", 1);
        }
        s->dot = next;
    }
    keep(s, input->ptr + kept, input->len - kept);
    *input = STR_EMPTY;
    return LMTP_MORE;
}

void lmtp_reply(LmtpSession *s, const char *text)
{
    assert(s->state == LMTP_REPLYING && s->replied < s->recipient_count);
    reply(s, text);
    if (++s->replied == s->recipient_count) {
        forget_mail(s);
    }
}

LmtpStep lmtp_feed(LmtpSession *s, Str *input)
{
    LmtpStep step = LMTP_MORE;
    while (step == LMTP_MORE && s->state != LMTP_ENDED && input->len > 0) {
        if (s->out.len > LMTP_OUT_MAX / 2) {
            return LMTP_FLUSH;
        }
        assert(s->state != LMTP_REPLYING);
        step = s->state == LMTP_DATA ? feed_data(s, input) : feed_command(s, input);
    }
    return s->state == LMTP_ENDED ? LMTP_END : step;
}
