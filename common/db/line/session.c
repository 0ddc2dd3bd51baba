// SPDX-License-Identifier: Apache-2.0
#include "common/db/line/session.h"

#include <string.h>

// set_config is SET as a function: it takes parameters and can be prepared. Without a value it sets
// what the server, the database, the role or the url have as their default.
static const DbStatement SETUP = {
    "db_setup", "SELECT set_config('app.tenant_id', $1::text, $3::bool),"
                " set_config('synchronous_commit', CASE WHEN $2::bool THEN 'off' END, $3::bool),"
                " pg_backend_pid()"};

static Str tenants_of(const Session *s)
{
    return str_of(s->tenants, s->len);
}

static bool holds(const Session *s, const DbTxn *txn)
{
    return s->known && s->lazy == txn->lazy && str_eq(tenants_of(s), txn->named);
}

DbParams *session_setup(Session *s, DbTxn *txn, int pid)
{
    bool keeps = s->ours && txn->named.len <= SESSION_TENANTS_MAX;
    // One that is not known to be ours holds nothing: nothing ever stays in it.
    bool bare = !s->ours && txn->named.len == 0 && !txn->lazy;
    s->kept = false;
    s->pid = pid;
    if (bare || (keeps && holds(s, txn))) {
        return NULL;
    }
    s->kept = keeps;
    DbParams *p = db_params_new(txn, &SETUP);
    db_text(p, txn->named);
    db_bool(p, txn->lazy);
    db_bool(p, !keeps);
    return p;
}

void session_read(Session *s, const PGresult *res)
{
    s->ours = db_get_int(res, 0, 2) == s->pid;
}

void session_end(Session *s, const DbTxn *txn, bool committed)
{
    if (!committed) {
        s->known = false;
    } else if (s->kept) {
        s->known = true;
        s->lazy = txn->lazy;
        s->len = txn->named.len;
        memcpy(s->tenants, txn->named.ptr, s->len);
    }
    s->kept = false;
}

SessionFit session_fit(const Session *s, const DbTxn *txn)
{
    if (!s->known) {
        return s->ours ? FIT_OTHER : FIT_UNUSED;
    }
    if (holds(s, txn)) {
        return FIT_SAME;
    }
    bool kind = s->lazy == txn->lazy && (s->len > 0) == (txn->named.len > 0);
    return kind ? FIT_KIND : FIT_OTHER;
}
