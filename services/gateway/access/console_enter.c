// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_enter.h"

#include "common/base/log.h"
#include "services/gateway/access/console_answer.h"

Entering *console_enter(
    const ConsolePublic *console, HttpRequest *http, uint8_t ret_hash[SHA256_LEN])
{
    uint8_t secret[SESSION_SECRET_LEN];
    Entering *entering = arena_zalloc(http->arena, sizeof *entering);
    entering->console = console;
    entering->http = http;
    random_bytes(secret, sizeof secret);
    hex_encode(secret, sizeof secret, entering->secret);
    session_hash(str_from(entering->secret), ret_hash);
    id_new("ses_", http->received_at_us, entering->id);
    return entering;
}

void console_on_entered(void *ctx, DbTxn *txn, const Error *err)
{
    const Entering *entering = ctx;
    const Sessions *sessions = entering->console->sessions;
    HttpRequest *http = entering->http;
    const PGresult *rows = err == NULL ? db_txn_result(txn, entering->result) : NULL;
    if (err != NULL) {
        console_fail(http, err);
    } else if (db_rows(rows) == 0) {
        console_refuse(http, 403, entering->slug, entering->over);
    } else {
        LOG(LOG_INFO, "a person signed in", log_str("user", db_get_text(rows, 0, 0)),
            log_str("role", db_get_text(rows, 0, 1)), log_text("session", entering->id));
        console_cookie(sessions, http, sessions_cookie(sessions), entering->secret, 0);
        console_go_to(http, "/console/");
    }
}
