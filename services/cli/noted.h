// SPDX-License-Identifier: Apache-2.0
// What a command does past the API, in the audit log before it is done. Law: without the entry it
// is not done. (What goes through the API the gateway notes.) A new command that changes something
// is a row of tests/integration/access/test_cli_noted.py.
#pragma once

#include "common/session/audit_session.h"
#include "services/cli/cli.h"

const char *cli_user(void); // the login that runs the command, before sudo; else "operator"
// "cli root": who runs the command, as far as this machine knows. In the command's arena.
const char *cli_actor(const Cli *cli);
// The note with what it lacks: tenant (default platform), actor, program and time. session NULL:
// one is opened for it.
bool cli_audit(Cli *cli, Session *session, const AuditNote *note, Error *err);
// A change without more to say than what it is of: kind write.
bool cli_audit_write(
    Cli *cli, Session *session, const char *action, const char *target, Error *err);
