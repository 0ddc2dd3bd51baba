// SPDX-License-Identifier: Apache-2.0
#include "services/cli/noted.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"

enum { USER_MAX = 64 };

const char *cli_user(void)
{
    const char *user = getenv("SUDO_USER");
    user = user != NULL ? user : getenv("USER");
    return user != NULL && user[0] != '\0' ? user : "operator";
}

// An '@' in it, as in a directory's login, is refused by the audit log.
const char *cli_actor(const Cli *cli)
{
    Str name = str_slice(str_from(cli_user()), 0, USER_MAX);
    ptrdiff_t at = str_find(name, '@');
    name = at >= 0 ? str_slice(name, 0, (size_t)at) : name;
    return arena_printf(cli->arena, "cli " STR_FMT, STR_ARG(name));
}

static bool append(Cli *cli, Session *session, const AuditNote *note, Error *err)
{
    Session own;
    if (session != NULL) {
        return session_audit(session, note, NULL, err);
    }
    if (!session_open(&own, &cli->settings.session, err)) {
        return false;
    }
    bool ok = session_audit(&own, note, NULL, err);
    session_close(&own);
    return ok;
}

bool cli_audit(Cli *cli, Session *session, const AuditNote *note, Error *err)
{
    AuditNote whole = *note;
    whole.tenant = note->tenant != NULL ? note->tenant : "platform";
    whole.actor = note->actor != NULL ? note->actor : cli_actor(cli);
    whole.program = "stentor " STENTOR_VERSION;
    whole.at_us = clock_now_us();
    if (!append(cli, session, &whole, err)) {
        return error_wrap(err, "nothing was done, because it cannot be noted");
    }
    CRASH_POINT("command.noted");
    return true;
}

bool cli_audit_write(Cli *cli, Session *session, const char *action, const char *target, Error *err)
{
    const AuditNote note = {.kind = AUDIT_WRITE, .action = action, .target = target};
    return cli_audit(cli, session, &note, err);
}
