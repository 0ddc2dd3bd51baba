// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/smtp/smtp_session.h"

#include <assert.h>
#include <string.h>

#include "common/base/crash.h"
#include "services/dispatcher/mime/mime_encode.h"

enum { CODE_OK_CLASS = 2, CODE_GO_ON = 354, CODE_CLOSING = 421, CODE_BAD_SEQUENCE = 503 };

void smtp_session_init(
    SmtpSession *session, const SmtpOptions *options, const SmtpHooks *hooks, void *ctx)
{
    *session = (SmtpSession){.options = options, .hooks = hooks, .ctx = ctx};
    session->phase = options->implicit_tls ? SMTP_HANDSHAKE : SMTP_GREETING;
    session->expect[session->expected++] = EXPECT_SETUP;
    buf_init(&session->out, SMTP_OUT_MAX);
}

void smtp_session_done(SmtpSession *session)
{
    buf_done(&session->out);
}

// ---- phases ----

// A move that is refused ends the session: its connection is closed, and what was not answered is
// given back or unknown, as with any connection that is lost.
static void move(SmtpSession *session, SmtpPhase next)
{
    if (!smtp_phase_move(&session->phase, next, session->options->host)) {
        session->phase = SMTP_FAILED;
    }
}

static void expect(SmtpSession *session, SmtpExpect what)
{
    assert(session->expected < SMTP_EXPECT_MAX);
    session->expect[session->expected++] = what;
}

static SmtpExpect take_expected(SmtpSession *session)
{
    SmtpExpect first = session->expect[0];
    session->expected--;
    memmove(session->expect, session->expect + 1, session->expected * sizeof *session->expect);
    return first;
}

static bool fail(SmtpSession *session, const SmtpReply *reply, const char *what, Error *err)
{
    char text[160];
    smtp_reply_clean(reply, text, sizeof text);
    move(session, SMTP_FAILED);
    return error_set(
        err, ERROR_TRANSIENT, "the server answers %s with '%d %s%s%s'", what, reply->code,
        reply->enhanced, reply->enhanced[0] != '\0' ? " " : "", text);
}

static void say(SmtpSession *session, const char *line)
{
    buf_cstr(&session->out, line);
    buf_str(&session->out, STR("\r\n"));
}

static void say_hello(SmtpSession *session, SmtpPhase phase)
{
    move(session, phase);
    buf_cstr(&session->out, phase == SMTP_EHLO ? "EHLO " : "HELO ");
    say(session, session->options->helo);
    expect(session, EXPECT_SETUP);
}

static void become_ready(SmtpSession *session)
{
    move(session, SMTP_READY);
    smtp_session_pull(session);
}

// ---- greeting, EHLO, STARTTLS, AUTH ----

static void say_base64(SmtpSession *session, const char *prefix, Str secret)
{
    buf_cstr(&session->out, prefix);
    mime_base64(secret, &session->out);
    say(session, "");
    expect(session, EXPECT_SETUP);
}

static void begin_auth_plain(SmtpSession *session)
{
    char secret[2 * SMTP_CREDENTIAL_MAX + 3]; // NUL user NUL password (RFC 4616)
    size_t user = strlen(session->options->user);
    size_t password = strlen(session->options->password);
    secret[0] = '\0';
    memcpy(secret + 1, session->options->user, user);
    secret[1 + user] = '\0';
    memcpy(secret + 2 + user, session->options->password, password);
    say_base64(session, "AUTH PLAIN ", (Str){secret, user + password + 2});
}

static bool refuse_auth(SmtpSession *session, const char *why, Error *err)
{
    move(session, SMTP_FAILED);
    return error_set(err, ERROR_TRANSIENT, "%s", why);
}

// The one place that decides it, whatever led here: whoever is on the way may have taken STARTTLS
// out of the server's list in order to read the password.
static bool may_show_password(const SmtpSession *session)
{
    switch (session->options->tls) {
    case SMTP_TLS_REQUIRED:
    case SMTP_TLS_UNVERIFIED:
        return session->encrypted;
    case SMTP_TLS_PLAINTEXT:
        return true;
    case SMTP_TLS_OFF:
    case SMTP_TLS_OPPORTUNISTIC:
        break;
    }
    return false;
}

static bool needs_tls(const SmtpSession *session)
{
    return session->options->tls == SMTP_TLS_REQUIRED ||
           session->options->tls == SMTP_TLS_UNVERIFIED;
}

static bool authenticate(SmtpSession *session, Error *err)
{
    if (session->options->user[0] == '\0') {
        become_ready(session);
        return true;
    }
    if (!may_show_password(session)) {
        return refuse_auth(
            session, "a password is not sent without tls and a certificate for the server's name",
            err);
    }
    if (!session->caps.auth_plain && !session->caps.auth_login) {
        return refuse_auth(session, "the server offers neither 'AUTH PLAIN' nor 'AUTH LOGIN'", err);
    }
    move(session, SMTP_AUTH);
    session->auth_step = 0;
    if (session->caps.auth_plain) {
        begin_auth_plain(session);
    } else {
        say(session, "AUTH LOGIN");
        expect(session, EXPECT_SETUP);
    }
    return true;
}

static bool on_auth(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == 235) {
        become_ready(session);
        return true;
    }
    if (reply->code != 334 || session->caps.auth_plain || session->auth_step > 1) {
        return fail(session, reply, "AUTH", err);
    }
    const char *secret =
        session->auth_step++ == 0 ? session->options->user : session->options->password;
    say_base64(session, "", str_from(secret));
    return true;
}

static bool on_capabilities(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    session->caps = smtp_caps_parse(reply);
    SmtpTlsMode mode = session->options->tls;
    if (session->encrypted || mode == SMTP_TLS_OFF || mode == SMTP_TLS_PLAINTEXT) {
        return authenticate(session, err);
    }
    if (session->caps.starttls) {
        move(session, SMTP_STARTTLS);
        say(session, "STARTTLS");
        expect(session, EXPECT_SETUP);
        return true;
    }
    if (needs_tls(session)) {
        move(session, SMTP_FAILED);
        return error_set(
            err, ERROR_TRANSIENT,
            "the server offers no STARTTLS, and STENTOR_SMTP_TLS or a user asks for it");
    }
    return authenticate(session, err);
}

static bool on_ehlo(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code / 100 == CODE_OK_CLASS) {
        return on_capabilities(session, reply, err);
    }
    bool wants_more = needs_tls(session) || session->options->user[0] != '\0';
    if (reply->code / 100 == 5 && !wants_more) {
        say_hello(session, SMTP_HELO); // a server from before 1995: no extensions
        return true;
    }
    return fail(session, reply, "EHLO", err);
}

static bool on_starttls(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == 220) {
        move(session, SMTP_HANDSHAKE);
        return true;
    }
    if (needs_tls(session)) {
        return fail(session, reply, "STARTTLS", err);
    }
    return authenticate(session, err);
}

void smtp_session_encrypted(SmtpSession *session)
{
    session->encrypted = true;
    if (session->options->implicit_tls) {
        move(session, SMTP_GREETING);
    } else {
        say_hello(session, SMTP_EHLO); // what was said in the clear counts no more (RFC 3207 4.2)
    }
}

static bool on_setup(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    switch (session->phase) {
    case SMTP_GREETING:
        if (!ok) {
            return fail(session, reply, "the connection", err);
        }
        say_hello(session, SMTP_EHLO);
        return true;
    case SMTP_EHLO:
        return on_ehlo(session, reply, err);
    case SMTP_HELO:
        if (!ok) {
            return fail(session, reply, "HELO", err);
        }
        become_ready(session);
        return true;
    case SMTP_STARTTLS:
        return on_starttls(session, reply, err);
    case SMTP_AUTH:
        return on_auth(session, reply, err);
    case SMTP_QUIT:
    case SMTP_HANDSHAKE:
    case SMTP_READY:
    case SMTP_FAILED:
    case SMTP_PHASE_COUNT:
        break;
    }
    move(session, SMTP_FAILED);
    return error_set(err, ERROR_CANCELLED, "the connection was closed in good order");
}

// ---- mails ----

static void answer(SmtpSession *session, Mail *mail, int code, const SmtpRefusal *said)
{
    char digits[4] = {
        (char)('0' + code / 100), (char)('0' + code / 10 % 10), (char)('0' + code % 10), '\0'};
    SendResult result = {
        .state = SEND_ANSWERED,
        .reply = smtp_classify(code, str_from(said->enhanced)),
        .code = str_from(digits),
        .enhanced = str_from(said->enhanced),
        .text = str_from(said->text),
    };
    session->hooks->on_answer(session->ctx, mail, &result);
}

static void note(SmtpRefusal *refusal, const SmtpReply *reply)
{
    refusal->set = true;
    refusal->code = reply->code;
    memcpy(refusal->enhanced, reply->enhanced, sizeof refusal->enhanced);
    smtp_reply_clean(reply, refusal->text, sizeof refusal->text);
}

static void say_mail(SmtpSession *session)
{
    const Mail *mail = session->envelope;
    Buf *out = &session->out;
    buf_str(out, STR("MAIL FROM:<"));
    buf_str(out, mail->from);
    buf_char(out, '>');
    if (session->caps.size_max > 0) {
        buf_printf(out, " SIZE=%zu", mail->message.len);
    }
    if (mail->utf8) {
        buf_str(
            out, session->caps.eightbitmime ? STR(" BODY=8BITMIME SMTPUTF8") : STR(" SMTPUTF8"));
    }
    buf_str(out, STR("\r\n"));
    expect(session, EXPECT_MAIL);
}

static void say_rcpt(SmtpSession *session)
{
    buf_str(&session->out, STR("RCPT TO:<"));
    buf_str(&session->out, session->envelope->to);
    buf_str(&session->out, STR(">\r\n"));
    expect(session, EXPECT_RCPT);
}

static void say_data(SmtpSession *session)
{
    buf_str(&session->out, STR("DATA\r\n"));
    expect(session, EXPECT_DATA);
}

// What this server can never take is answered without asking it.
static bool is_impossible(SmtpSession *session, const Mail *mail, SmtpRefusal *ret)
{
    if (mail->utf8 && !session->caps.smtputf8) {
        *ret = (SmtpRefusal){
            true, 553, "5.6.7", "the address is not ASCII, and the server has no SMTPUTF8"};
        return true;
    }
    if (session->caps.size_max > 0 && mail->message.len > session->caps.size_max) {
        *ret = (SmtpRefusal){true, 552, "5.3.4", "the mail is longer than the server's SIZE"};
        return true;
    }
    return false;
}

static void begin_envelope(SmtpSession *session, Mail *mail)
{
    session->envelope = mail;
    session->refusal.set = false;
    if (session->mail_open) {
        say(session, "RSET");
        expect(session, EXPECT_RSET);
        session->mail_open = false;
        if (!session->caps.pipelining) {
            return; // MAIL follows its answer
        }
    }
    say_mail(session);
    if (session->caps.pipelining) {
        say_rcpt(session);
        say_data(session);
    }
}

void smtp_session_pull(SmtpSession *session)
{
    if (session->phase != SMTP_READY || session->envelope != NULL) {
        return;
    }
    if (session->expected > 0 && !session->caps.pipelining) {
        return;
    }
    if (session->mails >= session->options->mails_max) {
        if (session->expected == 0) {
            smtp_session_quit(session);
        }
        return;
    }
    Mail *mail;
    while ((mail = session->hooks->next(session->ctx)) != NULL) {
        SmtpRefusal refusal = {0};
        if (!is_impossible(session, mail, &refusal)) {
            begin_envelope(session, mail);
            return;
        }
        answer(session, mail, refusal.code, &refusal);
    }
}

static void say_message(SmtpSession *session)
{
    CRASH_POINT("smtp.enveloped");
    Buf *out = &session->out;
    Str rest = session->envelope->message;
    ptrdiff_t end;
    // A line that begins with a dot gets a second one (RFC 5321 4.5.2). Copied into one write with
    // what follows it.
    while ((end = str_find(rest, '\n')) >= 0) {
        if (rest.ptr[0] == '.') {
            buf_char(out, '.');
        }
        buf_append(out, rest.ptr, (size_t)end + 1);
        rest = str_slice(rest, (size_t)end + 1, rest.len);
    }
    if (rest.len > 0) {
        if (rest.ptr[0] == '.') {
            buf_char(out, '.');
        }
        buf_str(out, rest);
        buf_str(out, STR("\r\n"));
    }
    session->dot_in_out = true;
    session->dot_offset = out->len;
    buf_str(out, STR(".\r\n"));
    assert(!out->full); // two messages of MIME_BYTES_MAX fit
    session->sending = session->envelope;
    session->envelope = NULL;
    session->mails++;
    expect(session, EXPECT_FINAL);
}

static void end_envelope(SmtpSession *session)
{
    Mail *mail = session->envelope;
    session->envelope = NULL;
    answer(session, mail, session->refusal.code, &session->refusal);
}

static bool on_rset(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code / 100 != CODE_OK_CLASS) {
        return fail(session, reply, "RSET", err);
    }
    if (!session->caps.pipelining) {
        say_mail(session);
    }
    return true;
}

static bool on_mail(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == CODE_BAD_SEQUENCE) {
        return fail(session, reply, "MAIL", err); // we and the server disagree about where we are
    }
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    if (ok) {
        session->mail_open = true;
    } else {
        note(&session->refusal, reply);
    }
    if (!session->caps.pipelining) {
        if (ok) {
            say_rcpt(session);
        } else {
            end_envelope(session);
        }
    }
    return true;
}

static void on_rcpt(SmtpSession *session, const SmtpReply *reply)
{
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    if (!ok && !session->refusal.set) {
        note(&session->refusal, reply);
    }
    if (!session->caps.pipelining) {
        if (ok) {
            say_data(session);
        } else {
            end_envelope(session);
        }
    }
}

// The server waits for the message now, so the only way not to send it is to hang up: this process
// was stopped, or Postgres away, for so long that somebody else may have taken the mail over.
static bool withhold(SmtpSession *session, Error *err)
{
    move(session, SMTP_FAILED);
    return error_set(err, ERROR_CANCELLED, "the claim of a mail ended before it was written");
}

static bool on_data(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    bool refused = session->refusal.set;
    if (reply->code == CODE_GO_ON) {
        session->mail_open = false;
        if (!refused && !session->hooks->may_write(session->ctx, session->envelope)) {
            return withhold(session, err);
        }
        if (!refused) {
            say_message(session);
            return true;
        }
        // A server may take DATA though it refused every recipient (RFC 2920 3.1): a lone dot ends
        // that.
        say(session, ".");
        expect(session, EXPECT_NOTHING);
    } else if (!refused) {
        note(&session->refusal, reply);
    }
    end_envelope(session);
    return true;
}

static void on_final(SmtpSession *session, const SmtpReply *reply)
{
    Mail *mail = session->sending;
    CRASH_POINT("smtp.answered");
    session->sending = NULL;
    SmtpRefusal said;
    note(&said, reply);
    answer(session, mail, reply->code, &said);
}

static bool on_closing(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    // 421 in the place of a final answer is that answer: the mail was not taken. Any other mail was
    // not begun.
    if (session->expected > 0 && session->expect[0] == EXPECT_FINAL) {
        (void)take_expected(session);
        on_final(session, reply);
    }
    return fail(session, reply, session->phase == SMTP_READY ? "a command" : "the connection", err);
}

bool smtp_session_reply(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == CODE_CLOSING) {
        return on_closing(session, reply, err);
    }
    if (session->expected == 0) {
        return fail(session, reply, "nothing", err);
    }
    bool fine = true;
    switch (take_expected(session)) {
    case EXPECT_SETUP:
        fine = on_setup(session, reply, err);
        break;
    case EXPECT_RSET:
        fine = on_rset(session, reply, err);
        break;
    case EXPECT_MAIL:
        fine = on_mail(session, reply, err);
        break;
    case EXPECT_RCPT:
        on_rcpt(session, reply);
        break;
    case EXPECT_DATA:
        fine = on_data(session, reply, err);
        break;
    case EXPECT_FINAL:
        on_final(session, reply);
        break;
    case EXPECT_NOTHING:
        break;
    }
    if (fine) {
        smtp_session_pull(session);
    }
    return fine;
}

void smtp_session_quit(SmtpSession *session)
{
    if (session->phase == SMTP_READY) {
        move(session, SMTP_QUIT);
        say(session, "QUIT");
        expect(session, EXPECT_SETUP);
    }
}

bool smtp_session_idle(const SmtpSession *session)
{
    return session->phase == SMTP_READY && session->sending == NULL && session->envelope == NULL;
}

unsigned smtp_session_patience_ms(const SmtpSession *session, const char **ret_what)
{
    // clang-format off
    static const char *const phases[SMTP_PHASE_COUNT] = {
        [SMTP_GREETING] = "the connection", [SMTP_EHLO] = "EHLO", [SMTP_HELO] = "HELO", [SMTP_STARTTLS] = "STARTTLS",
        [SMTP_HANDSHAKE] = "the tls handshake", [SMTP_AUTH] = "AUTH", [SMTP_READY] = "a command", [SMTP_QUIT] = "QUIT",
        [SMTP_FAILED] = "nothing",
    };
    static const char *const commands[] = {
        [EXPECT_SETUP] = "a command", [EXPECT_RSET] = "RSET", [EXPECT_MAIL] = "MAIL", [EXPECT_RCPT] = "RCPT",
        [EXPECT_DATA] = "DATA", [EXPECT_FINAL] = "the end of the mail", [EXPECT_NOTHING] = "an empty mail",
    };
    // clang-format on
    bool setup = session->expected == 0 || session->expect[0] == EXPECT_SETUP;
    *ret_what = setup ? phases[session->phase] : commands[session->expect[0]];
    if (setup || session->expect[0] != EXPECT_FINAL) {
        return session->options->command_ms;
    }
    return session->options->data_ms;
}
