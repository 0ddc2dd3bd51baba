// SPDX-License-Identifier: Apache-2.0
#include "common/session/audit_session.h"

typedef struct AppendWait {
    SessionWait wait;
    AuditHead head;
} AppendWait;

static void on_append_done(void *ctx, const Error *err, const AuditHead *head)
{
    AppendWait *append = ctx;
    if (err == NULL) {
        append->head = *head;
    }
    session_wait_end(&append->wait, err);
}

bool session_audit(Session *session, const AuditNote *note, AuditHead *ret_head, Error *err)
{
    AppendWait append = {.wait = {.session = session}};
    AuditLog *log = audit_log_new(session->bus);
    audit_log_append(log, note, on_append_done, &append);
    bool ok = session_wait(&append.wait, err);
    audit_log_free(log);
    if (ok && ret_head != NULL) {
        *ret_head = append.head;
    }
    return ok || error_wrap(err, "audit log");
}

bool session_audit_read(Session *session, StreamEach each, void *ctx, Error *err)
{
    return session_walk(session, "AUDIT", NULL, each, ctx, err);
}
