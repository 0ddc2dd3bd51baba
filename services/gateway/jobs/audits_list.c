// SPDX-License-Identifier: Apache-2.0
// GET /v1/ops/audits: the tenant's, the newest first.
#include <inttypes.h>

#include "common/api/page.h"
#include "services/gateway/jobs/audits_api.h"

typedef struct ListCall {
    ApiCall *call;
    Page page;
} ListCall;

// Ids that a key leads to have no time: created_at orders, and the id where two are of one moment.
// Ended ones go after 30 days, so a tenant's are few.
// clang-format off
#define AT(column) "to_char(" #column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
static const DbStatement LIST = {"audits_list",
    "SELECT id, created_at, jsonb_build_object('id', id, 'state', state, 'from', parameters->>'from', 'to', parameters->>'to', 'asked_by', asked_by,"
    " 'created_at', " AT(created_at) ", 'started_at', " AT(started_at) ", 'finished_at', " AT(finished_at) ", 'tries', tries, 'error', error,"
    " 'result', result)::text"
    " FROM gateway.jobs WHERE tenant_id = $1::text AND kind = 'audit'"
    " AND ($2::timestamptz IS NULL OR (created_at, id) < ($2::timestamptz, $3::text)) ORDER BY created_at DESC, id DESC LIMIT $4::int4"};
// clang-format on

static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    ListCall *list = ctx;
    Arena *arena = list->call->http->arena;
    if (err != NULL) {
        api_answer_failure(list->call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int shown = db_rows(rows) <= (int)list->page.limit ? db_rows(rows) : (int)list->page.limit;
    json_t *data = json_array();
    for (int row = 0; row < shown; row++) {
        Str text = db_get_text(rows, row, 2);
        (void)json_array_append_new(data, json_loadb(text.ptr, text.len, 0, NULL));
    }
    const char *last = "";
    if (shown < db_rows(rows)) { // one more than fits was asked for
        last = arena_printf(
            arena, "%" PRId64 "/" STR_FMT, db_get_time(rows, shown - 1, 1),
            STR_ARG(db_get_text(rows, shown - 1, 0)));
    }
    page_answer(list->call, data, str_from(last));
}

static void get_audits(ApiCall *call)
{
    const AuditsApi *api = call->ctx;
    ListCall *list = arena_zalloc(call->http->arena, sizeof *list);
    list->call = call;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &list->page)) {
        return;
    }
    Str rest = list->page.after; // "<created at, us>/<id>"; nothing of it comes from the caller
    Str time = STR_EMPTY;
    int64_t before_us = 0;
    if (rest.len > 0 && (!str_split(&rest, '/', &time) || !str_to_i64(time, &before_us))) {
        api_answer_parameter(call, "cursor", "not a cursor of this list");
        return;
    }
    DbTxn *txn = db_txn_new(api->pool);
    db_txn_tenant(txn, str_from(call->tenant));
    DbParams *p = db_txn_add(txn, &LIST, NULL);
    db_text(p, str_from(call->tenant));
    db_time(p, before_us);
    db_text(p, rest);
    db_i32(p, (int32_t)list->page.limit + 1);
    db_txn_submit(txn, on_listed, list);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/ops/audits", SCOPE_OPS_READ, get_audits, "limit cursor", false},
};

void audits_list_add(Api *api, AuditsApi *audits)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], audits);
}
