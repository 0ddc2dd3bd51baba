// SPDX-License-Identifier: Apache-2.0
#include "common/api/callers/key_usage.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/map.h"

enum { PATH_SIZE = 160, WRITE_MAX = 2000 }; // a transaction has a bound of tenants

// Sorted, so that two processes that write at once lock the rows in one order.
static const DbStatement WRITE = {
    "gateway_key_usage",
    "INSERT INTO gateway.key_usage AS k (tenant_id, key_id, last_used_at)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS u (t, i, at)"
    " ORDER BY t, i ON CONFLICT (tenant_id, key_id) DO UPDATE"
    " SET last_used_at = greatest(k.last_used_at, excluded.last_used_at)"};

typedef struct Use {
    int64_t at_us;
    int64_t written_us; // the last use that a write holds, or held
} Use;

struct KeyUsage {
    DbPool *pool;
    Map *uses; // "<tenant>/<key id>" -> Use
    uint64_t written_ms;
    bool writing;
};

KeyUsage *key_usage_new(DbPool *pool)
{
    KeyUsage *usage = xcalloc(1, sizeof *usage);
    usage->pool = pool;
    usage->uses = map_new(free);
    return usage;
}

void key_usage_free(KeyUsage *usage)
{
    if (usage != NULL) {
        map_free(usage->uses);
        free(usage);
    }
}

static Str path_of(char out[PATH_SIZE], Str tenant, Str key_id)
{
    int len = snprintf(out, PATH_SIZE, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(key_id));
    return len > 0 && len < PATH_SIZE ? str_of(out, (size_t)len) : STR_EMPTY;
}

void key_usage_note(KeyUsage *usage, Str tenant, Str key_id, int64_t at_us)
{
    char path[PATH_SIZE];
    Str place = path_of(path, tenant, key_id);
    Use *use = map_get(usage->uses, place);
    if (use == NULL && place.len > 0 && map_count(usage->uses) < KEY_USAGE_KEYS_MAX) {
        use = xcalloc(1, sizeof *use);
        map_put(usage->uses, place, use);
    }
    if (use != NULL && use->at_us < at_us) {
        use->at_us = at_us;
    }
}

int64_t key_usage_known(const KeyUsage *usage, Str tenant, Str key_id)
{
    char path[PATH_SIZE];
    const Use *use = map_get(usage->uses, path_of(path, tenant, key_id));
    return use != NULL ? use->at_us : 0;
}

static void on_written(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    KeyUsage *usage = ctx;
    usage->writing = false;
    if (err == NULL) {
        return;
    }
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "the last use of keys was not written, the next minute tries again",
            log_error(err));
    }
    Str path;
    void *value = NULL;
    for (size_t i = 0; map_next(usage->uses, &i, &path, &value);) {
        ((Use *)value)->written_us = 0;
    }
}

// Nothing leaves the map: at most a use a key is in it, and there are few keys.
void key_usage_flush(KeyUsage *usage)
{
    Str path, tenant;
    void *value = NULL;
    DbTxn *txn = NULL;
    DbArray *tenants = NULL, *ids = NULL, *times = NULL;
    int count = 0;
    for (size_t i = 0;
         !usage->writing && count < WRITE_MAX && map_next(usage->uses, &i, &path, &value);) {
        Use *use = value;
        if (use->at_us <= use->written_us || !str_split(&path, '/', &tenant)) {
            continue;
        }
        if (txn == NULL) {
            txn = db_txn_new(usage->pool);
            DbParams *p = db_txn_add(txn, &WRITE, NULL);
            tenants = db_array(p, DB_TEXT);
            ids = db_array(p, DB_TEXT);
            times = db_array(p, DB_TIME);
        }
        db_txn_tenant(txn, tenant);
        db_push_text(tenants, tenant);
        db_push_text(ids, path);
        db_push_time(times, use->at_us);
        use->written_us = use->at_us;
        count++;
    }
    if (txn != NULL) {
        usage->writing = true;
        db_txn_submit(txn, on_written, usage);
    }
}

void key_usage_tick(KeyUsage *usage, uint64_t now_ms)
{
    if (now_ms - usage->written_ms >= KEY_USAGE_EVERY_MS) {
        usage->written_ms = now_ms;
        key_usage_flush(usage);
    }
}
