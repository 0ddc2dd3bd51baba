// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_link.h"

#include "services/gateway/access/console_answer.h"
#include "services/gateway/access/console_enter.h"

static const char OVER[] = "the link was used or its ten minutes are over: 'stentor console login' "
                           "makes a new one";
static const Str FIELD = {"token=", 6};

typedef struct Opened {
    const ConsolePublic *console;
    HttpRequest *http;
    Str token;
    int link, session; // of the statements
} Opened;

static bool is_there(HttpRequest *http, Str token)
{
    if (token.len == 0) {
        console_refuse(http, 403, "no-link", "ask an operator for a link: 'stentor console login'");
        return false;
    }
    return true;
}

// ---- its page ----

static void on_opened(void *ctx, DbTxn *txn, const Error *err)
{
    const Opened *opened = ctx;
    if (err != NULL) {
        console_fail(opened->http, err);
        return;
    }
    const PGresult *link = db_txn_result(txn, opened->link);
    const PGresult *session = opened->session < 0 ? NULL : db_txn_result(txn, opened->session);
    if (db_rows(link) == 0) {
        console_refuse(opened->http, 403, "link-over", OVER);
        return;
    }
    bool is_in = session != NULL && db_rows(session) > 0;
    console_ask(
        opened->http, &(ConsoleAsk){
                          .token = opened->token,
                          .user = db_get_text(link, 0, 0),
                          .role = db_get_text(link, 0, 1),
                          .tenants = db_get_text(link, 0, 2),
                          .present = is_in ? db_get_text(session, 0, 0) : STR_EMPTY,
                      });
}

void console_link_show(const ConsolePublic *console, HttpRequest *http)
{
    uint8_t hash[SHA256_LEN];
    Str secret = sessions_secret(console->sessions, http);
    Opened *opened = arena_zalloc(http->arena, sizeof *opened);
    *opened = (Opened){console, http, http_query(http, "token"), 0, -1};
    if (!is_there(http, opened->token)) {
        return;
    }
    DbTxn *txn = db_txn_new(console->sessions->pool);
    session_hash(opened->token, hash);
    opened->link = console_add_look(txn, hash);
    if (secret.len > 0) {
        session_hash(secret, hash);
        opened->session = console_add_who(txn, hash);
    }
    db_txn_submit(txn, on_opened, opened);
}

// ---- its form ----

void console_link_use(const ConsolePublic *console, HttpRequest *http)
{
    uint8_t link[SHA256_LEN], hash[SHA256_LEN], present[SHA256_LEN];
    bool is_form = str_starts(http->body, FIELD);
    Str token = is_form ? str_slice(http->body, FIELD.len, http->body.len) : STR_EMPTY;
    Str secret = sessions_secret(console->sessions, http);
    if (!is_there(http, token)) {
        return;
    }
    session_hash(token, link);
    Entering *entering = console_enter(console, http, hash);
    entering->slug = "link-over";
    entering->over = OVER;
    DbTxn *txn = db_txn_new(console->sessions->pool);
    entering->result = console_add_use(txn, link, hash, entering->id, &console->times);
    if (secret.len > 0) {
        session_hash(secret, present);
        console_add_replace(txn, present, hash);
    }
    db_txn_submit(txn, console_on_entered, entering);
}
