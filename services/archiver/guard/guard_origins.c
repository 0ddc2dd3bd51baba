// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/guard/guard_origins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/log.h"

enum { AT_ONCE = 2000, LOOKS_MAX = 3, TENANT_SIZE = 64 };

typedef struct Waiting {
    char id[ID_SIZE];
    char tenant[TENANT_SIZE];
    GuardOutcome what;
    int64_t at_us;
    int looks;
} Waiting;

struct GuardOrigins {
    DbPool *pool;
    GuardOriginFound found;
    void *ctx;
    Waiting *waiting;
    size_t count;
    size_t asked; // the first so many are being looked for; 0: none
    bool cleared; // ... and count no more
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static const DbStatement ORIGINS = {
    "guard_origins",
    "SELECT n, from_domain, provider"
    " FROM stentor.mail_origins($1::timestamptz[], $2::text[], $3::text[])",
};

// ---- scopes ----

Str guard_scope_name(const GuardScope *scope, char space[GUARD_SCOPE_SIZE])
{
    int len = snprintf(
        space, GUARD_SCOPE_SIZE, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(scope->tenant),
        STR_ARG(str_slice(scope->from_domain, 0, 255)), STR_ARG(scope->provider));
    return str_of(space, len < GUARD_SCOPE_SIZE ? (size_t)len : GUARD_SCOPE_SIZE - 1);
}

GuardScope guard_scope_read(Str name)
{
    GuardScope scope = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    (void)str_split(&name, '\n', &scope.tenant);
    (void)str_split(&name, '\n', &scope.from_domain);
    scope.provider = name;
    return scope;
}

// ---- looking up ----

GuardOrigins *guard_origins_new(DbPool *pool, GuardOriginFound found, void *ctx)
{
    GuardOrigins *origins = xcalloc(1, sizeof *origins);
    *origins = (GuardOrigins){.pool = pool, .found = found, .ctx = ctx};
    origins->waiting = xcalloc(GUARD_ORIGINS_MAX, sizeof *origins->waiting);
    return origins;
}

void guard_origins_want(
    GuardOrigins *origins, Str tenant, Str notification_id, GuardOutcome what, int64_t at_us)
{
    Waiting one = {.what = what, .at_us = at_us};
    if (origins->count < GUARD_ORIGINS_MAX && str_to_c(notification_id, one.id, sizeof one.id) &&
        str_to_c(tenant, one.tenant, sizeof one.tenant)) {
        origins->waiting[origins->count++] = one;
    }
}

void guard_origins_clear(GuardOrigins *origins)
{
    origins->count = origins->asked;
    origins->cleared = origins->asked > 0;
}

static void drop_first(GuardOrigins *origins, size_t count)
{
    origins->count -= count;
    memmove(origins->waiting, origins->waiting + count, origins->count * sizeof *origins->waiting);
}

// Those that were not found are looked for again, behind the others.
static void settle(GuardOrigins *origins, const bool *found)
{
    size_t asked = origins->asked;
    for (size_t i = 0; i < asked; i++) {
        Waiting one = origins->waiting[i];
        if (!found[i] && !origins->cleared && ++one.looks < LOOKS_MAX &&
            origins->count < GUARD_ORIGINS_MAX) {
            origins->waiting[origins->count++] = one;
        }
    }
    drop_first(origins, asked);
    origins->asked = 0;
    origins->cleared = false;
}

static void on_origins(void *ctx, DbTxn *txn, const Error *err)
{
    GuardOrigins *origins = ctx;
    bool found[AT_ONCE] = {false};
    if (err != NULL) {
        LOG(LOG_WARN, "where bounced e-mails came from was not read; trying again", log_error(err));
    }
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    for (int row = 0; rows != NULL && row < db_rows(rows); row++) {
        size_t at = (size_t)db_get_int(rows, row, 0) - 1;
        if (at < origins->asked && !found[at]) {
            const Waiting *one = &origins->waiting[at];
            GuardScope scope = {
                str_from(one->tenant), db_get_text(rows, row, 1), db_get_text(rows, row, 2)};
            found[at] = true;
            if (!origins->cleared) {
                origins->found(origins->ctx, &scope, one->what, one->at_us);
            }
        }
    }
    settle(origins, found);
    if (origins->on_stopped != NULL) {
        origins->on_stopped(origins->stopped_ctx);
    }
}

void guard_origins_look_up(GuardOrigins *origins)
{
    if (origins->asked > 0 || origins->count == 0 || origins->on_stopped != NULL ||
        !db_pool_ready(origins->pool)) {
        return;
    }
    origins->asked = origins->count < AT_ONCE ? origins->count : AT_ONCE;
    DbTxn *txn = db_txn_new(origins->pool);
    DbParams *params = db_txn_add(txn, &ORIGINS, NULL);
    DbArray *created = db_array(params, DB_TIME);
    DbArray *ids = db_array(params, DB_TEXT);
    DbArray *tenants = db_array(params, DB_TEXT);
    for (size_t i = 0; i < origins->asked; i++) {
        int64_t ms = 0;
        (void)id_parse(str_from(origins->waiting[i].id), "ntf_", &ms);
        db_push_time(created, ms * 1000);
        db_push_text(ids, str_from(origins->waiting[i].id));
        db_push_text(tenants, str_from(origins->waiting[i].tenant));
    }
    db_txn_submit(txn, on_origins, origins);
}

void guard_origins_stop(GuardOrigins *origins, void (*on_stopped)(void *ctx), void *ctx)
{
    origins->stopped_ctx = ctx;
    origins->on_stopped = on_stopped;
    if (origins->asked == 0) {
        on_stopped(ctx);
    }
}

void guard_origins_free(GuardOrigins *origins)
{
    if (origins != NULL) {
        free(origins->waiting);
        free(origins);
    }
}
