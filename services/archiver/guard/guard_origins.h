// SPDX-License-Identifier: Apache-2.0
// Scopes of guard rails, and to which one a bounce or a complaint belongs: a vendor's event knows
// neither From domain nor provider, so they are read from history, many at once. Law: at most
// GUARD_ORIGINS_MAX wait; more are not counted. What history does not have yet is looked for three
// times.
#pragma once

#include "common/db/db.h"
#include "common/model/rules/guard_rates.h"

enum { GUARD_SCOPE_SIZE = 400, GUARD_ORIGINS_MAX = 20000 };

typedef struct GuardScope {
    Str tenant, from_domain, provider; // provider empty: all of them
} GuardScope;

// "acme\nacme.test\ngmail.com", in `space`; and back, pointing into it.
Str guard_scope_name(const GuardScope *scope, char space[GUARD_SCOPE_SIZE]);
GuardScope guard_scope_read(Str name);

typedef struct GuardOrigins GuardOrigins;
typedef void (*GuardOriginFound)(
    void *ctx, const GuardScope *scope, GuardOutcome what, int64_t at_us);

GuardOrigins *guard_origins_new(DbPool *pool, GuardOriginFound found, void *ctx);
void guard_origins_want(
    GuardOrigins *origins, Str tenant, Str notification_id, GuardOutcome what, int64_t at_us);
void guard_origins_clear(GuardOrigins *origins);
// Now and then; one look-up at a time.
void guard_origins_look_up(GuardOrigins *origins);
// on_stopped comes when no look-up is under way, perhaps at once; then free.
void guard_origins_stop(GuardOrigins *origins, void (*on_stopped)(void *ctx), void *ctx);
void guard_origins_free(GuardOrigins *origins); // NULL-safe
