// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_sql.h"

#include "common/base/buf.h"

// clang-format off
static const DbStatement LOGIN = {"gateway_login_make",
    "INSERT INTO gateway.logins VALUES ($1::bytea, $2::text, $3::text, string_to_array($4::text, ','), $5::text,"
    " now() + make_interval(secs => $6::int4))"};
// What is over goes with the next one that signs in.
static const DbStatement SWEEP_LOGINS = {"gateway_logins_sweep", "DELETE FROM gateway.logins WHERE expires_at < now()"};
static const DbStatement SWEEP_SESSIONS = {"gateway_sessions_sweep",
    "DELETE FROM gateway.sessions WHERE expires_at < now() OR seen_at < now() - make_interval(secs => idle_seconds)"};
static const DbStatement USE = {"gateway_login_use",
    "WITH used AS (DELETE FROM gateway.logins WHERE token_hash = $1::bytea AND expires_at > now() AND role <> '' RETURNING *)"
    " INSERT INTO gateway.sessions (token_hash, id, user_name, role, tenants, made_by, idle_seconds, expires_at)"
    " SELECT $2::bytea, $3::text, user_name, role, tenants, made_by, $4::int4, now() + make_interval(secs => $5::int4) FROM used"
    " RETURNING user_name, role"};
static const DbStatement LOOK = {"gateway_login_look",
    "SELECT user_name, role, array_to_string(tenants, ', ') FROM gateway.logins"
    " WHERE token_hash = $1::bytea AND expires_at > now() AND role <> ''"};
static const DbStatement WHO = {"gateway_session_who",
    "SELECT user_name FROM gateway.sessions WHERE token_hash = $1::bytea AND expires_at > now()"
    " AND seen_at > now() - make_interval(secs => idle_seconds)"};
static const DbStatement REPLACE = {"gateway_session_replace",
    "DELETE FROM gateway.sessions WHERE token_hash = $1::bytea"
    " AND EXISTS (SELECT FROM gateway.sessions AS s WHERE s.token_hash = $2::bytea)"};
// A state is kept as used for longer than its cookie lives.
static const DbStatement SESSION = {"gateway_session_make",
    "WITH fresh AS (INSERT INTO gateway.logins VALUES ($1::bytea, $6::text, '', '{}', $9::text, now() + interval '1 hour')"
    "  ON CONFLICT DO NOTHING RETURNING user_name)"
    " INSERT INTO gateway.sessions (token_hash, id, user_name, role, tenants, made_by, idle_seconds, expires_at)"
    " SELECT $2::bytea, $3::text, user_name, $7::text, string_to_array($8::text, ','), $9::text, $4::int4,"
    "  now() + make_interval(secs => $5::int4) FROM fresh RETURNING user_name, role"};
static const DbStatement END = {"gateway_session_end", "DELETE FROM gateway.sessions WHERE token_hash = $1::bytea"};
static const DbStatement LIST = {"gateway_sessions_list",
    "SELECT id, user_name, role, array_to_string(tenants, ','), made_by, made_at, seen_at, expires_at FROM gateway.sessions"
    " WHERE expires_at > now() AND seen_at > now() - make_interval(secs => idle_seconds)"
    " AND ($1::text = 'platform' OR tenants = ARRAY[$1::text]) AND id > $2::text ORDER BY id LIMIT $3::int4"};
static const DbStatement REVOKE = {"gateway_session_revoke",
    "DELETE FROM gateway.sessions WHERE id = $2::text AND ($1::text = 'platform' OR tenants = ARRAY[$1::text]) RETURNING id"};
// clang-format on

Str console_name(Str text, Arena *arena)
{
    Buf out;
    buf_init(&out, CONSOLE_NAME_MAX + 8);
    text = str_trim(text);
    for (size_t i = 0; i < text.len && out.len <= CONSOLE_NAME_MAX; i++) {
        if (text.ptr[i] == '@') {
            buf_cstr(&out, "(at)");
        } else {
            buf_append(&out, &text.ptr[i], 1);
        }
    }
    Str name = arena_str(arena, buf_view(&out));
    buf_done(&out);
    bool good = name.len <= CONSOLE_NAME_MAX && str_is_utf8(name) && !str_has_control(name);
    return good ? name : STR_EMPTY;
}

static Str bytes_of(const uint8_t hash[SHA256_LEN])
{
    return str_of(hash, SHA256_LEN);
}

void console_add_login(DbTxn *txn, const uint8_t hash[SHA256_LEN], const ConsoleUser *user)
{
    DbParams *p = db_txn_add(txn, &LOGIN, NULL);
    db_bytes(p, bytes_of(hash));
    db_text(p, user->name);
    db_text(p, user->role);
    db_text(p, user->tenants);
    db_text(p, user->made_by);
    db_i32(p, CONSOLE_LINK_S);
}

// The first five parameters of USE and SESSION.
static DbParams *begin_session(
    DbTxn *txn, const DbStatement *statement, const uint8_t used[SHA256_LEN],
    const uint8_t secret[SHA256_LEN], const char *id, const ConsoleTimes *times, int *ret_index)
{
    (void)db_txn_add(txn, &SWEEP_LOGINS, NULL);
    (void)db_txn_add(txn, &SWEEP_SESSIONS, NULL);
    DbParams *p = db_txn_add(txn, statement, ret_index);
    db_bytes(p, bytes_of(used));
    db_bytes(p, bytes_of(secret));
    db_text(p, str_from(id));
    db_i32(p, (int32_t)times->idle_s);
    db_i32(p, (int32_t)times->session_s);
    return p;
}

int console_add_use(
    DbTxn *txn, const uint8_t link[SHA256_LEN], const uint8_t secret[SHA256_LEN], const char *id,
    const ConsoleTimes *times)
{
    int index = 0;
    (void)begin_session(txn, &USE, link, secret, id, times, &index);
    return index;
}

int console_add_look(DbTxn *txn, const uint8_t link[SHA256_LEN])
{
    int index = 0;
    DbParams *p = db_txn_add(txn, &LOOK, &index);
    db_bytes(p, bytes_of(link));
    return index;
}

int console_add_who(DbTxn *txn, const uint8_t secret[SHA256_LEN])
{
    int index = 0;
    DbParams *p = db_txn_add(txn, &WHO, &index);
    db_bytes(p, bytes_of(secret));
    return index;
}

void console_add_replace(
    DbTxn *txn, const uint8_t present[SHA256_LEN], const uint8_t secret[SHA256_LEN])
{
    DbParams *p = db_txn_add(txn, &REPLACE, NULL);
    db_bytes(p, bytes_of(present));
    db_bytes(p, bytes_of(secret));
}

int console_add_session(
    DbTxn *txn, const uint8_t state[SHA256_LEN], const uint8_t secret[SHA256_LEN], const char *id,
    const ConsoleUser *user, const ConsoleTimes *times)
{
    int index = 0;
    DbParams *p = begin_session(txn, &SESSION, state, secret, id, times, &index);
    db_text(p, user->name);
    db_text(p, user->role);
    db_text(p, user->tenants);
    db_text(p, user->made_by);
    return index;
}

void console_add_end(DbTxn *txn, const uint8_t secret[SHA256_LEN])
{
    DbParams *p = db_txn_add(txn, &END, NULL);
    db_bytes(p, bytes_of(secret));
}

int console_add_list(DbTxn *txn, Str tenant, Str after, size_t limit)
{
    int index = 0;
    DbParams *p = db_txn_add(txn, &LIST, &index);
    db_text(p, tenant);
    db_text(p, after);
    db_i32(p, (int32_t)limit);
    return index;
}

int console_add_revoke(DbTxn *txn, Str tenant, Str id)
{
    int index = 0;
    DbParams *p = db_txn_add(txn, &REVOKE, &index);
    db_text(p, tenant);
    db_text(p, id);
    return index;
}
