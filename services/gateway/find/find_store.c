// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/find/find_store.h"

enum { CONNECTIONS = 4, TIMEOUT_MS = 5000 };

static DbPool *open_pool(Service *service, const char *url)
{
    if (url[0] == '\0') {
        return service_pool(service);
    }
    return db_pool_new(
        service_loop(service), &(DbPoolOptions){
                                   .url = url,
                                   .application_name = "stentor-gateway",
                                   .connections = CONNECTIONS,
                                   .statement_timeout_ms = TIMEOUT_MS,
                               });
}

void find_store_open(FindStore *store, Service *service, const FindOptions *options)
{
    const char *index_url = options->on ? options->database_url : "";
    *store = (FindStore){
        .on = options->on,
        .own_index = index_url[0] != '\0',
        .own_history = options->read_database_url[0] != '\0',
        .index = open_pool(service, index_url),
        .history = open_pool(service, options->read_database_url),
    };
    store->index_url = store->own_index ? index_url : service_database_url(service);
    store->closing = store->own_index + store->own_history;
}

static void on_pool_closed(void *ctx)
{
    FindStore *store = ctx;
    if (--store->closing == 0) {
        store->on_closed(store->ctx);
    }
}

void find_store_close(FindStore *store, void (*on_closed)(void *ctx), void *ctx)
{
    store->on_closed = on_closed;
    store->ctx = ctx;
    if (store->closing == 0) {
        on_closed(ctx);
        return;
    }
    if (store->own_index) {
        db_pool_close(store->index, on_pool_closed, store);
    }
    if (store->own_history) {
        db_pool_close(store->history, on_pool_closed, store);
    }
}
