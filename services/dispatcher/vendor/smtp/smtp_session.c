// SPDX-License-Identifier: Apache-2.0
// A connection from its greeting to QUIT, and which command each reply answers. smtp_mail.c has the
// mails.
#include <assert.h>
#include <string.h>

#include "common/mime/mime_encode.h"
#include "services/dispatcher/vendor/smtp/smtp_session_internal.h"

enum { CODE_CLOSING = 421 };

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

// A move that the table does not allow ends the session: its connection is closed, and unanswered
// mails are returned or unknown, as with any lost connection.
void smtp_session_move(SmtpSession *session, SmtpPhase next)
{
    if (!smtp_phase_move(&session->phase, next, session->options->host)) {
        session->phase = SMTP_FAILED;
    }
}

void smtp_session_expect(SmtpSession *session, SmtpExpect what)
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

bool smtp_session_fail(SmtpSession *session, const SmtpReply *reply, const char *what, Error *err)
{
    char text[160];
    smtp_reply_clean(reply, text, sizeof text);
    smtp_session_move(session, SMTP_FAILED);
    return error_set(
        err, ERROR_TRANSIENT, "the server answers %s with '%d %s%s%s'", what, reply->code,
        reply->enhanced, reply->enhanced[0] != '\0' ? " " : "", text);
}

void smtp_session_send(SmtpSession *session, const char *line)
{
    buf_cstr(&session->out, line);
    buf_str(&session->out, STR("\r\n"));
}

static void send_hello(SmtpSession *session, SmtpPhase phase)
{
    smtp_session_move(session, phase);
    buf_cstr(&session->out, phase == SMTP_EHLO ? "EHLO " : "HELO ");
    smtp_session_send(session, session->options->helo);
    smtp_session_expect(session, EXPECT_SETUP);
}

static void become_ready(SmtpSession *session)
{
    smtp_session_move(session, SMTP_READY);
    smtp_session_pull(session);
}

// ---- greeting, EHLO, STARTTLS, AUTH ----

static void write_base64(SmtpSession *session, const char *prefix, Str secret)
{
    buf_cstr(&session->out, prefix);
    mime_base64(secret, &session->out);
    smtp_session_send(session, "");
    smtp_session_expect(session, EXPECT_SETUP);
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
    write_base64(session, "AUTH PLAIN ", (Str){secret, user + password + 2});
}

static bool refuse_auth(SmtpSession *session, const char *why, Error *err)
{
    smtp_session_move(session, SMTP_FAILED);
    return error_set(err, ERROR_TRANSIENT, "%s", why);
}

// The only place that decides this: an attacker on the way may have removed STARTTLS from the
// server's list in order to read the password.
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
    smtp_session_move(session, SMTP_AUTH);
    session->auth_step = 0;
    if (session->caps.auth_plain) {
        begin_auth_plain(session);
    } else {
        smtp_session_send(session, "AUTH LOGIN");
        smtp_session_expect(session, EXPECT_SETUP);
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
        return smtp_session_fail(session, reply, "AUTH", err);
    }
    const char *secret =
        session->auth_step++ == 0 ? session->options->user : session->options->password;
    write_base64(session, "", str_from(secret));
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
        smtp_session_move(session, SMTP_STARTTLS);
        smtp_session_send(session, "STARTTLS");
        smtp_session_expect(session, EXPECT_SETUP);
        return true;
    }
    if (needs_tls(session)) {
        smtp_session_move(session, SMTP_FAILED);
        return error_set(
            err, ERROR_TRANSIENT,
            "the server offers no STARTTLS, which STENTOR_SMTP_TLS or the user in STENTOR_SMTP_URL "
            "requires");
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
        send_hello(session, SMTP_HELO); // a server from before 1995: no extensions
        return true;
    }
    return smtp_session_fail(session, reply, "EHLO", err);
}

static bool on_starttls(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == 220) {
        smtp_session_move(session, SMTP_HANDSHAKE);
        return true;
    }
    if (needs_tls(session)) {
        return smtp_session_fail(session, reply, "STARTTLS", err);
    }
    return authenticate(session, err);
}

void smtp_session_encrypted(SmtpSession *session)
{
    session->encrypted = true;
    if (session->options->implicit_tls) {
        smtp_session_move(session, SMTP_GREETING);
    } else {
        send_hello(session, SMTP_EHLO); // what was announced in the clear is void (RFC 3207 4.2)
    }
}

static bool on_setup(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    switch (session->phase) {
    case SMTP_GREETING:
        if (!ok) {
            return smtp_session_fail(session, reply, "the connection", err);
        }
        send_hello(session, SMTP_EHLO);
        return true;
    case SMTP_EHLO:
        return on_ehlo(session, reply, err);
    case SMTP_HELO:
        if (!ok) {
            return smtp_session_fail(session, reply, "HELO", err);
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
    smtp_session_move(session, SMTP_FAILED);
    return error_set(err, ERROR_CANCELLED, "the connection was closed normally");
}

// ---- replies ----

static bool on_closing(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    // 421 instead of a final answer is that answer: the mail was not taken. No other mail was
    // started.
    if (session->expected > 0 && session->expect[0] == EXPECT_FINAL) {
        (void)take_expected(session);
        smtp_mail_on_final(session, reply);
    }
    return smtp_session_fail(
        session, reply, session->phase == SMTP_READY ? "a command" : "the connection", err);
}

bool smtp_session_reply(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == CODE_CLOSING) {
        return on_closing(session, reply, err);
    }
    if (session->expected == 0) {
        return smtp_session_fail(session, reply, "nothing", err);
    }
    bool fine = true;
    switch (take_expected(session)) {
    case EXPECT_SETUP:
        fine = on_setup(session, reply, err);
        break;
    case EXPECT_RSET:
        fine = smtp_mail_on_rset(session, reply, err);
        break;
    case EXPECT_MAIL:
        fine = smtp_mail_on_mail(session, reply, err);
        break;
    case EXPECT_RCPT:
        smtp_mail_on_rcpt(session, reply);
        break;
    case EXPECT_DATA:
        fine = smtp_mail_on_data(session, reply, err);
        break;
    case EXPECT_FINAL:
        smtp_mail_on_final(session, reply);
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
        smtp_session_move(session, SMTP_QUIT);
        smtp_session_send(session, "QUIT");
        smtp_session_expect(session, EXPECT_SETUP);
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
