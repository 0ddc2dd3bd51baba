// SPDX-License-Identifier: Apache-2.0
// What one connection's session holds: the tenants that were named and whether commits are lazy. A
// transaction that wants what the one before it wanted sets nothing. Private to common/db. Law:
// row-level security rests on `app.tenant_id`. It stays in a session only when the session is this
// connection's alone; behind a pooler, which gives it to others too, it is set for one transaction.
// Whatever is not a commit makes unknown what the session holds, and the next transaction sets it.
#pragma once

#include "common/db/txn.h"

enum { SESSION_TENANTS_MAX = 1024 }; // bytes; more are set for their transaction alone

typedef struct Session {
    bool ours;  // the server's process is the one that libpq knows: no pooler stands between
    bool known; // what follows is what it holds
    bool lazy;
    size_t len;
    char tenants[SESSION_TENANTS_MAX];
    // of the transaction under way
    bool kept; // its setting stays
    int pid;   // of the server's process, as libpq knows it
} Session;

// The statement that goes before those of `txn`; NULL: none is needed. pid: PQbackendPID.
DbParams *session_setup(Session *session, DbTxn *txn, int pid);
// The answer to that statement.
void session_read(Session *session, const PGresult *res);
void session_end(Session *session, const DbTxn *txn, bool committed);

typedef enum SessionFit {
    FIT_OTHER,
    FIT_UNUSED, // nothing was set in it yet
    FIT_KIND,   // as lazy, and for some tenants or for none, as the transaction
    FIT_SAME,   // nothing is to be set
} SessionFit;
SessionFit session_fit(const Session *session, const DbTxn *txn);
