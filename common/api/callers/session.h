// SPDX-License-Identifier: Apache-2.0
// A person at the console in the place of a key: a cookie with 32 random bytes, of which
// gateway.sessions has the SHA-256. Law: a write by a cookie comes from the console's own origin,
// or is refused; over plain HTTP a cookie is taken at the loopback only, unless an operator has
// said otherwise by STENTOR_CONSOLE_URL.
#pragma once

#include "common/base/error.h"
#include "common/db/db.h"
#include "common/http/server.h"

enum { SESSION_SECRET_LEN = 32, SESSION_SECRET_SIZE = 65, SESSION_TENANTS_MAX = 32 };

typedef struct Sessions {
    DbPool *pool; // borrowed; NULL: no session is taken
    Str origin;   // "https://stentor.example"; empty: plain HTTP at the loopback
} Sessions;

// STENTOR_CONSOLE_URL: "", or scheme and host without a path. ERROR_CONFIG.
bool sessions_origin(const char *url, Str *ret, Error *err);
bool sessions_are_secure(const Sessions *sessions);    // by HTTPS
const char *sessions_cookie(const Sessions *sessions); // its name
// The value of a cookie in the header Cookie; empty: there is none, or it is no secret's hex. Pure.
Str session_secret_of(Str header, const char *name);
// Of the request; empty where none is taken.
Str sessions_secret(const Sessions *sessions, const HttpRequest *http);
// The cookie may be used, and set, over this connection.
bool sessions_allowed(const Sessions *sessions, const HttpRequest *http);
// The browser says that the request comes from the console itself.
bool sessions_same_origin(const Sessions *sessions, const HttpRequest *http);
void session_hash(Str secret, uint8_t out[32]);

typedef struct ApiPerson {
    Str id, user, role;
    Str made_by; // "key <id>", "user <name>", "oidc": who made its link
    Str tenants[SESSION_TENANTS_MAX];
    size_t tenant_count;
    int64_t expires_at_us;
} ApiPerson;

// found NULL: there is none, it has ended, or was idle for too long. Its texts live in the arena.
typedef void (*SessionRead)(void *ctx, const ApiPerson *found, const Error *err);
void sessions_read(const Sessions *sessions, Str secret, Arena *arena, SessionRead done, void *ctx);
