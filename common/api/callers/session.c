// SPDX-License-Identifier: Apache-2.0
#include "common/api/callers/session.h"

#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"

#define PLAIN "stentor"
#define SECURE "__Host-stentor"

// Only a use of a minute ago is written, so that a page with ten calls is one write.
static const DbStatement READ = {
    "gateway_session_read",
    "WITH s AS (SELECT id, user_name, role, array_to_string(tenants, ','), expires_at, made_by"
    "  FROM gateway.sessions WHERE token_hash = $1::bytea AND expires_at > now()"
    "  AND seen_at > now() - make_interval(secs => idle_seconds)),"
    " u AS (UPDATE gateway.sessions SET seen_at = now() WHERE token_hash = $1::bytea"
    "  AND seen_at < now() - interval '1 minute' AND EXISTS (SELECT FROM s))"
    " SELECT * FROM s"};
enum { ID, USER, ROLE, TENANTS, EXPIRES_AT, MADE_BY };

bool sessions_origin(const char *url, Str *ret, Error *err)
{
    Str text = str_from(url);
    bool secure = str_starts(text, STR("https://"));
    size_t from = secure ? 8 : 7;
    Str host = str_slice(text, from, text.len);
    bool good = text.len == 0 || ((secure || str_starts(text, STR("http://"))) && host.len > 0 &&
                                  str_find(host, '/') < 0 && str_find(host, '@') < 0 &&
                                  str_find(host, ' ') < 0 && !str_has_control(host));
    *ret = text;
    return good ||
           error_set(
               err, ERROR_CONFIG,
               "STENTOR_CONSOLE_URL: '%.80s' is not https://HOST or http://HOST[:PORT]", url);
}

bool sessions_are_secure(const Sessions *sessions)
{
    return str_starts(sessions->origin, STR("https://"));
}

const char *sessions_cookie(const Sessions *sessions)
{
    return sessions_are_secure(sessions) ? SECURE : PLAIN;
}

Str session_secret_of(Str header, const char *name)
{
    Str item = STR_EMPTY;
    while (str_split(&header, ';', &item)) {
        item = str_trim(item);
        Str key = STR_EMPTY, value = item;
        uint8_t bytes[SESSION_SECRET_LEN];
        size_t len = 0;
        if (str_split(&value, '=', &key) && str_eq(key, str_from(name)) &&
            value.len == SESSION_SECRET_SIZE - 1 && hex_decode(value, bytes, sizeof bytes, &len) &&
            len == sizeof bytes) {
            return value;
        }
    }
    return STR_EMPTY;
}

bool sessions_allowed(const Sessions *sessions, const HttpRequest *http)
{
    return sessions->origin.len > 0 || http_address_is_loopback(&http->client);
}

Str sessions_secret(const Sessions *sessions, const HttpRequest *http)
{
    return sessions->pool != NULL && sessions_allowed(sessions, http)
               ? session_secret_of(http_header(http, "Cookie"), sessions_cookie(sessions))
               : STR_EMPTY;
}

bool sessions_same_origin(const Sessions *sessions, const HttpRequest *http)
{
    Str site = http_header(http, "Sec-Fetch-Site");
    if (site.len > 0) {
        return str_eq(site, STR("same-origin"));
    }
    Str own = sessions->origin;
    if (own.len == 0) {
        Str host = http_header(http, "Host");
        own = str_from(arena_printf(http->arena, "http://" STR_FMT, STR_ARG(host)));
    }
    return str_eq(http_header(http, "Origin"), own);
}

void session_hash(Str secret, uint8_t out[SHA256_LEN])
{
    sha256(secret, out);
}

typedef struct Asked {
    Arena *arena;
    SessionRead done;
    void *ctx;
} Asked;

static void take_tenants(Str list, ApiPerson *ret)
{
    Str tenant = STR_EMPTY;
    while (ret->tenant_count < SESSION_TENANTS_MAX && str_split(&list, ',', &tenant)) {
        ret->tenants[ret->tenant_count++] = tenant;
    }
}

static void on_read(void *ctx, DbTxn *txn, const Error *err)
{
    const Asked *asked = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (rows == NULL || db_rows(rows) == 0) {
        asked->done(asked->ctx, NULL, err);
        return;
    }
    ApiPerson person = {
        .id = arena_str(asked->arena, db_get_text(rows, 0, ID)),
        .user = arena_str(asked->arena, db_get_text(rows, 0, USER)),
        .role = arena_str(asked->arena, db_get_text(rows, 0, ROLE)),
        .made_by = arena_str(asked->arena, db_get_text(rows, 0, MADE_BY)),
        .expires_at_us = db_get_time(rows, 0, EXPIRES_AT),
    };
    take_tenants(arena_str(asked->arena, db_get_text(rows, 0, TENANTS)), &person);
    asked->done(asked->ctx, &person, NULL);
}

void sessions_read(const Sessions *sessions, Str secret, Arena *arena, SessionRead done, void *ctx)
{
    uint8_t hash[SHA256_LEN];
    Asked *asked = arena_zalloc(arena, sizeof *asked);
    *asked = (Asked){arena, done, ctx};
    session_hash(secret, hash);
    DbTxn *txn = db_txn_new(sessions->pool);
    DbParams *p = db_txn_add(txn, &READ, NULL);
    db_bytes(p, str_of(hash, sizeof hash));
    db_txn_submit(txn, on_read, asked);
}
