// SPDX-License-Identifier: Apache-2.0
// The statements of logins and sessions. Law: a link opens one session, once.
#pragma once

#include "common/codec/hash.h"
#include "common/db/db.h"

enum { CONSOLE_NAME_MAX = 64, CONSOLE_LINK_S = 600 };

// Who will be at the console.
typedef struct ConsoleUser {
    Str name;    // no '@': the audit log holds no address
    Str role;    // a set of scopes
    Str tenants; // with commas
    Str made_by;
} ConsoleUser;

// "alice@example.com" is "alice(at)example.com": the audit log refuses what may be a recipient's
// address. At most CONSOLE_NAME_MAX bytes on one line; empty: there is nothing left of it.
Str console_name(Str text, Arena *arena);

// A link of CONSOLE_LINK_S seconds.
void console_add_login(DbTxn *txn, const uint8_t hash[SHA256_LEN], const ConsoleUser *user);
typedef struct ConsoleTimes {
    int64_t session_s, idle_s;
} ConsoleTimes;
// Ends the link and begins a session. The statement's row: user_name, role; no row: there is no
// such link, or its time is over, or it was used.
int console_add_use(
    DbTxn *txn, const uint8_t link[SHA256_LEN], const uint8_t secret[SHA256_LEN], const char *id,
    const ConsoleTimes *times);
// What a link is, which stays: user_name, role, tenants; no row: as of console_add_use.
int console_add_look(DbTxn *txn, const uint8_t link[SHA256_LEN]);
// Whose session it is: user_name; no row: it has ended.
int console_add_who(DbTxn *txn, const uint8_t secret[SHA256_LEN]);
// Ends the browser's present session, where the new one has begun.
void console_add_replace(
    DbTxn *txn, const uint8_t present[SHA256_LEN], const uint8_t secret[SHA256_LEN]);
// A session without a link. Its state is used up: no row where it was used before.
int console_add_session(
    DbTxn *txn, const uint8_t state[SHA256_LEN], const uint8_t secret[SHA256_LEN], const char *id,
    const ConsoleUser *user, const ConsoleTimes *times);
void console_add_end(DbTxn *txn, const uint8_t secret[SHA256_LEN]);
// Rows: id, user_name, role, tenants, made_by, made_at, seen_at, expires_at, behind `after`. Of a
// tenant; of platform all.
int console_add_list(DbTxn *txn, Str tenant, Str after, size_t limit);
int console_add_revoke(DbTxn *txn, Str tenant, Str id); // a row: it was there
