// SPDX-License-Identifier: Apache-2.0
// A session's mails, from MAIL to the answer behind the final dot.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/crash.h"
#include "services/dispatcher/vendor/smtp/smtp_session_internal.h"

enum { CODE_GO_ON = 354, CODE_BAD_SEQUENCE = 503 };

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

static void write_mail(SmtpSession *session)
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
    if (session->caps.dsn && mail->envid.len > 0) {
        buf_str(out, STR(" RET=HDRS ENVID="));
        buf_str(out, mail->envid);
    }
    buf_str(out, STR("\r\n"));
    smtp_session_expect(session, EXPECT_MAIL);
}

static size_t recipient_count(const Mail *mail)
{
    return 1 + mail->copy_count;
}

// The n-th: 0 is the mail's own recipient.
static void write_rcpt(SmtpSession *session, size_t n)
{
    const Mail *mail = session->envelope;
    buf_str(&session->out, STR("RCPT TO:<"));
    buf_str(&session->out, n == 0 ? mail->to : mail->copies[n - 1]);
    buf_str(&session->out, STR(">\r\n"));
    smtp_session_expect(session, EXPECT_RCPT);
}

static void write_data(SmtpSession *session)
{
    buf_str(&session->out, STR("DATA\r\n"));
    smtp_session_expect(session, EXPECT_DATA);
}

// A mail that this server can never take is answered without trying.
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
    session->rcpt_answers = 0;
    session->copies.refused = 0;
    if (session->mail_open) {
        smtp_session_send(session, "RSET");
        smtp_session_expect(session, EXPECT_RSET);
        session->mail_open = false;
        if (!session->caps.pipelining) {
            return; // MAIL follows its answer
        }
    }
    write_mail(session);
    if (session->caps.pipelining) {
        for (size_t n = 0; n < recipient_count(mail); n++) {
            write_rcpt(session, n);
        }
        // With copies DATA waits for what becomes of the recipient: where that one is refused and a
        // copy is not, the lone dot behind DATA would be an empty mail.
        if (mail->copy_count == 0) {
            write_data(session);
        }
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

static void write_message(SmtpSession *session)
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
    session->sent_copies = session->copies;
    session->envelope = NULL;
    session->mails++;
    smtp_session_expect(session, EXPECT_FINAL);
}

static void end_envelope(SmtpSession *session)
{
    Mail *mail = session->envelope;
    session->envelope = NULL;
    answer(session, mail, session->refusal.code, &session->refusal);
}

bool smtp_mail_on_rset(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code / 100 != CODE_OK_CLASS) {
        return smtp_session_fail(session, reply, "RSET", err);
    }
    if (!session->caps.pipelining) {
        write_mail(session);
    }
    return true;
}

bool smtp_mail_on_mail(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    if (reply->code == CODE_BAD_SEQUENCE) {
        return smtp_session_fail(
            session, reply, "MAIL", err); // the server is in another state than this session
    }
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    if (ok) {
        session->mail_open = true;
    } else {
        note(&session->refusal, reply);
    }
    if (!session->caps.pipelining) {
        if (ok) {
            write_rcpt(session, 0);
        } else {
            end_envelope(session);
        }
    }
    return true;
}

static void note_copy(SmtpSession *session, const SmtpReply *reply)
{
    SmtpCopies *copies = &session->copies;
    char text[96];
    if (copies->refused++ == 0) {
        smtp_reply_clean(reply, text, sizeof text);
        (void)snprintf(copies->first, sizeof copies->first, "%d %s", reply->code, text);
    }
}

void smtp_mail_on_rcpt(SmtpSession *session, const SmtpReply *reply)
{
    bool ok = reply->code / 100 == CODE_OK_CLASS;
    size_t n = session->rcpt_answers++;
    size_t count = recipient_count(session->envelope);
    if (!ok && n == 0 && !session->refusal.set) {
        note(&session->refusal, reply);
    } else if (!ok && n > 0) {
        note_copy(session, reply);
    }
    if (session->caps.pipelining && (count == 1 || n + 1 < count)) {
        return; // DATA is written already, or another answer comes
    }
    if (session->refusal.set) {
        end_envelope(session);
    } else if (n + 1 < count) {
        write_rcpt(session, n + 1);
    } else {
        write_data(session);
    }
}

bool smtp_mail_on_data(SmtpSession *session, const SmtpReply *reply, Error *err)
{
    bool refused = session->refusal.set;
    if (reply->code == CODE_GO_ON) {
        session->mail_open = false;
        if (!refused && !session->hooks->may_write(session->ctx, session->envelope)) {
            // The server waits for the message now, so the only way not to send it is to close the
            // connection: this process was stopped, or Postgres away, for so long that another
            // process may have taken the mail over.
            smtp_session_move(session, SMTP_FAILED);
            return error_set(
                err, ERROR_CANCELLED,
                "the lease of a mail's claim ended before it was written; the connection is "
                "closed");
        }
        if (!refused) {
            write_message(session);
            return true;
        }
        // A server may take DATA although it rejected every recipient (RFC 2920 3.1): a lone dot
        // ends that.
        smtp_session_send(session, ".");
        smtp_session_expect(session, EXPECT_NOTHING);
    } else if (!refused) {
        note(&session->refusal, reply);
    }
    end_envelope(session);
    return true;
}

void smtp_mail_on_final(SmtpSession *session, const SmtpReply *reply)
{
    Mail *mail = session->sending;
    CRASH_POINT("smtp.answered");
    session->sending = NULL;
    SmtpRefusal said;
    note(&said, reply);
    if (session->sent_copies.refused > 0) {
        size_t len = strlen(said.text);
        (void)snprintf(
            said.text + len, sizeof said.text - len, " (%zu of %zu copies refused, the first: %s)",
            session->sent_copies.refused, mail->copy_count, session->sent_copies.first);
    }
    answer(session, mail, reply->code, &said);
}
