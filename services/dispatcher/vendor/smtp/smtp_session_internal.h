// SPDX-License-Identifier: Apache-2.0
// What smtp_session.c and smtp_mail.c share.
#pragma once

#include "services/dispatcher/vendor/smtp/smtp_session.h"

enum { CODE_OK_CLASS = 2 };

// smtp_session.c
void smtp_session_move(SmtpSession *session, SmtpPhase next);
void smtp_session_expect(SmtpSession *session, SmtpExpect what);
void smtp_session_send(SmtpSession *session, const char *line);
// false, with what the server answered in err; the session has failed.
bool smtp_session_fail(SmtpSession *session, const SmtpReply *reply, const char *what, Error *err);

// smtp_mail.c: the replies that belong to a mail. false as of smtp_session_reply().
bool smtp_mail_on_rset(SmtpSession *session, const SmtpReply *reply, Error *err);
bool smtp_mail_on_mail(SmtpSession *session, const SmtpReply *reply, Error *err);
void smtp_mail_on_rcpt(SmtpSession *session, const SmtpReply *reply);
bool smtp_mail_on_data(SmtpSession *session, const SmtpReply *reply, Error *err);
void smtp_mail_on_final(SmtpSession *session, const SmtpReply *reply);
