// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/key_last_use.h"

#include "common/base/clock.h"

static const DbStatement LAST = {
    "gateway_keys_last_used", "SELECT k.key_id, k.last_used_at FROM gateway.key_usage k"
                              " WHERE k.tenant_id = $1::text AND k.key_id = ANY ($2::text[])"};

typedef struct Asked {
    const KeyLastUse *last;
    ApiCall *call;
    json_t *keys;
    KeysShown done;
    void *ctx;
} Asked;

static Str id_of(const json_t *key)
{
    return str_from(json_string_value(json_object_get(key, "key_id")));
}

static int64_t written(const PGresult *rows, Str key_id)
{
    for (int i = 0; i < db_rows(rows); i++) {
        if (str_eq(db_get_text(rows, i, 0), key_id)) {
            return db_get_time(rows, i, 1);
        }
    }
    return 0;
}

static void on_read(void *ctx, DbTxn *txn, const Error *err)
{
    Asked *asked = ctx;
    size_t at;
    json_t *key;
    json_array_foreach(asked->keys, at, key)
    {
        char text[CLOCK_RFC3339_SIZE];
        Str id = id_of(key);
        int64_t here = key_usage_known(asked->last->usage, str_from(asked->call->tenant), id);
        int64_t there = err == NULL ? written(db_txn_result(txn, 0), id) : 0;
        int64_t last_us = here > there ? here : there;
        if (last_us != 0) {
            clock_format(last_us, text);
            (void)json_object_set_new(key, "last_used_at", json_string(text));
        } else if (err == NULL) {
            (void)json_object_set_new(key, "last_used_at", json_null());
        }
    }
    asked->done(asked->call, asked->keys, asked->ctx);
}

void key_last_use_add(
    const KeyLastUse *last, ApiCall *call, json_t *keys, KeysShown done, void *ctx)
{
    Asked *asked = arena_zalloc(call->http->arena, sizeof *asked);
    *asked = (Asked){last, call, keys, done, ctx};
    if (!db_pool_ready(last->pool)) {
        Error away;
        error_set(&away, ERROR_TRANSIENT, "Postgres is away");
        on_read(asked, NULL, &away);
        return;
    }
    DbTxn *txn = db_txn_new(last->pool);
    DbParams *p = db_txn_add(txn, &LAST, NULL);
    size_t at;
    json_t *key;
    db_txn_tenant(txn, str_from(call->tenant));
    db_text(p, str_from(call->tenant));
    DbArray *ids = db_array(p, DB_TEXT);
    json_array_foreach(keys, at, key)
    {
        db_push_text(ids, id_of(key));
    }
    db_txn_submit(txn, on_read, asked);
}
