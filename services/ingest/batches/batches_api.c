// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/batches_api.h"

#include <inttypes.h>

#include "common/api/api_json.h"
#include "common/api/guards/idempotency.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/campaign/member_choice.h"
#include "common/model/retention/retention.h"

enum {
    BODY_MAX = 64 * 1024, // of an answer about one batch
    LIST_BYTES_MAX = 1024 * 1024,
    MOVE_TRIES = 3,
    COUNT_MS = 5000, // that a dry run may count
};

// ---- what all have in common ----

BatchCall batch_call(ApiCall *call)
{
    return (BatchCall){
        .api = call->ctx,
        .base = call,
        .arena = call->http->arena,
        .tenant = str_from(call->tenant),
        .id = call->params[0],
    };
}

void batch_call_missing(const BatchCall *c)
{
    char *what = arena_printf(c->arena, "batch '%.64s'", arena_cstr(c->arena, c->id));
    api_answer_missing(c->base, what);
}

bool batch_call_has_id(const BatchCall *c)
{
    if (id_parse(c->id, "dbt_", NULL)) {
        return true;
    }
    batch_call_missing(c);
    return false;
}

DbTxn *batch_call_begin(const BatchCall *c)
{
    DbTxn *txn = db_txn_new(c->api->pool);
    db_txn_tenant(txn, c->tenant);
    return txn;
}

void batch_call_conflict(const BatchCall *c, const char *why)
{
    metric_add(c->base->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        c->base->http, 409, "batch-conflict", "The batch's state does not allow this", NULL, "%s",
        why);
}

void batch_call_respond(
    const BatchCall *c, int status, const BatchRow *row, const BatchTotals *totals)
{
    Buf out;
    buf_init(&out, BODY_MAX);
    batch_json_print(&out, row, totals, clock_now_us());
    http_respond(c->base->http, status, "application/json", buf_view(&out));
    buf_done(&out);
}

// The transaction's n-th result as a batch. false: answered.
static bool read_batch(const BatchCall *c, DbTxn *txn, int index, const Error *err, BatchRow *ret)
{
    Error broken = {0};
    if (err != NULL) {
        api_answer_failure(c->base, err);
        return false;
    }
    const PGresult *res = db_txn_result(txn, index);
    if (db_rows(res) == 0) {
        batch_call_missing(c);
        return false;
    }
    if (!batch_sql_read(res, 0, c->arena, ret, &broken)) {
        api_answer_failure(c->base, &broken);
        return false;
    }
    return true;
}

// ---- POST /v1/batches ----

typedef struct CreateCall {
    BatchCall call;
    BatchDraft draft;
    BatchRow row;
    Str key; // Idempotency-Key
    // Of a dry run:
    int64_t matched;
    int64_t count_until_us;
    char after[ID_SIZE]; // the last recipient that was looked at
} CreateCall;

static void on_db_created(void *ctx, DbTxn *txn, const Error *err)
{
    CreateCall *c = ctx;
    BatchRow row;
    if (!read_batch(&c->call, txn, 1, err, &row)) {
        return;
    }
    bool fresh = str_eq(row.id, c->row.id);
    if (!fresh && !str_eq(row.create_hash, c->row.create_hash)) {
        http_problem(
            c->call.base->http, 409, "idempotency-conflict",
            "The idempotency key belongs to another request", "Idempotency-Key",
            "this key came with another body before; choose a new key");
        return;
    }
    if (!fresh) {
        http_response_header(c->call.base->http, "Idempotent-Replayed", STR("true"));
    } else {
        row.total = (int64_t)c->draft.member_count; // the row was read before they were added
        row.chunks = row.total > 0;
    }
    char *path = arena_printf(c->call.arena, "/v1/batches/" STR_FMT, STR_ARG(row.id));
    http_response_header(c->call.base->http, "Location", str_from(path));
    batch_call_respond(&c->call, 201, &row, NULL);
}

static bool seal_draft(CreateCall *c, DbTxn *txn, Error *err)
{
    BatchCall *call = &c->call;
    BatchDraft *draft = &c->draft;
    DataKey *key = data_key_for_tenant(call->api->master, call->tenant);
    ChunkPlace place = {.tenant = call->tenant, .batch_id = c->row.id};
    Str blob = STR_EMPTY;
    bool ok =
        draft->variables.len == 0 || chunk_seal_text(
                                         key, call->tenant, c->row.id, "variables",
                                         draft->variables, call->arena, &c->row.variables, err);
    ok = ok &&
         (draft->member_count == 0 ||
          chunk_pack(key, &place, draft->members, draft->member_count, call->arena, &blob, err));
    data_key_free(key);
    if (!ok) {
        return false;
    }
    batch_sql_create(txn, &c->row, c->key);
    if (draft->member_count > 0) {
        int32_t count = (int32_t)draft->member_count;
        // A part 0 of a batch that a repeated key did not make finds no batch: nothing happens.
        batch_sql_add_part(
            txn, &(BatchPart){
                     .batch_id = c->row.id,
                     .hash = str_of(c->row.create_hash.ptr, c->row.create_hash.len),
                     .counts = &count,
                     .blobs = &blob,
                     .chunks = 1,
                 });
    }
    return true;
}

// What a repeat under the same key must be equal to.
static Str identity_of(const CreateCall *c)
{
    Str body = c->call.base->http->body;
    json_error_t ignored;
    // Once more: batch_json_parse takes its own apart.
    json_t *root = c->key.len > 0 ? api_json_load(body, 0, &ignored) : NULL;
    Str identity = root != NULL ? api_json_canonical(root, c->call.arena) : body;
    json_decref(root);
    return identity;
}

static void fill_row(CreateCall *c)
{
    HttpRequest *http = c->call.base->http;
    char *id = arena_alloc(c->call.arena, ID_SIZE);
    uint8_t *hash = arena_alloc(c->call.arena, SHA256_LEN);
    id_new("dbt_", http->received_at_us, id);
    retention_id_set_code(id, retention_class_code(c->draft.model.retention)); // its members' too
    hmac_sha256(master_hash_key(c->call.api->master), identity_of(c), hash);
    const BatchDraft *draft = &c->draft;
    c->row = (BatchRow){
        .id = str_from(id),
        .tenant = c->call.tenant,
        .name = draft->name,
        .category = draft->model.category,
        .channel = draft->model.channel,
        .priority = draft->model.priority,
        .template_key = draft->model.template_key,
        .template_version = draft->model.template_version,
        .locale = draft->model.locale,
        .consent_source = draft->model.consent_source,
        .consent_at_us = draft->model.consent_at_us,
        .scheduled_for_us = draft->scheduled_for_us,
        .rate_per_s = draft->rate_per_s,
        .step = batch_step(draft->rate_per_s),
        .created_by = c->call.base->key_id,
        .created_at_us = http->received_at_us,
        .create_hash = str_of(hash, SHA256_LEN),
        .query = draft->query,
    };
}

static bool check_create(CreateCall *c)
{
    HttpRequest *http = c->call.base->http;
    Problem problem = {0};
    BatchRules rules = {
        .now_us = http->received_at_us,
        .delivered = routes_channels(c->call.api->routes, c->call.tenant, c->call.api->delivered),
        .catalog = c->call.api->catalog,
        .tenant = c->call.tenant,
    };
    if (!idempotency_key_read(c->call.base, &c->key)) {
        return false;
    }
    if (!batch_json_parse(http->body, &rules, c->call.arena, &c->draft, &problem)) {
        api_answer_problem(c->call.base, &problem);
        return false;
    }
    return true;
}

// ---- whom a query finds ----

static void count_page(CreateCall *c);

static void respond_count(CreateCall *c, bool complete)
{
    char *text = arena_printf(
        c->call.arena, "{\"dry_run\":true,\"matched\":%" PRId64 ",\"complete\":%s}", c->matched,
        complete ? "true" : "false");
    http_respond(c->call.base->http, 200, "application/json", str_from(text));
}

static void on_db_counted(void *ctx, DbTxn *txn, const Error *err)
{
    CreateCall *c = ctx;
    if (err != NULL) {
        c->call.api->counting--;
        api_answer_failure(c->call.base, err);
        return;
    }
    MemberPage page;
    Arena *arena = arena_new(0); // a page's; the request's lives for all
    member_page_read(txn, MEMBER_PAGE, arena, &page);
    c->matched += (int64_t)page.count;
    (void)str_to_c(page.after, c->after, sizeof c->after);
    bool ended = page.ended;
    arena_free(arena);
    if (ended || clock_mono_us() >= c->count_until_us) {
        c->call.api->counting--;
        respond_count(c, ended);
    } else {
        count_page(c);
    }
}

static void count_page(CreateCall *c)
{
    DbTxn *txn = batch_call_begin(&c->call);
    const TenantSettings *tenant = catalog_tenant(c->call.api->catalog, c->call.tenant);
    MemberQuery query = {
        .tenant = c->call.tenant,
        .query = c->draft.query,
        .category = c->draft.model.category,
        .channel = c->draft.model.channel,
        .default_locale = str_from(tenant->default_locale),
    };
    member_page_add(txn, &query, str_from(c->after), MEMBER_PAGE);
    db_txn_submit(txn, on_db_counted, c);
}

static void begin_count(CreateCall *c)
{
    BatchesApi *api = c->call.api;
    if (api->counting >= BATCH_COUNTS_MAX) {
        api_answer_unavailable(c->call.base, "other dry runs are counting; try again in a moment");
        return;
    }
    api->counting++;
    c->count_until_us = clock_mono_us() + INT64_C(1000) * COUNT_MS;
    count_page(c);
}

static void post_batch(ApiCall *base)
{
    CreateCall *c = arena_zalloc(base->http->arena, sizeof *c);
    c->call = batch_call(base);
    if (!check_create(c)) {
        return;
    }
    if (c->draft.dry_run) {
        begin_count(c);
        return;
    }
    fill_row(c);
    DbTxn *txn = batch_call_begin(&c->call);
    Error err = {0};
    if (!seal_draft(c, txn, &err)) {
        db_txn_abandon(txn);
        api_answer_failure(base, &err);
        return;
    }
    db_txn_submit(txn, on_db_created, c);
}

// ---- GET /v1/batches/{} ----

static void on_db_got(void *ctx, DbTxn *txn, const Error *err)
{
    BatchCall *c = ctx;
    BatchRow row;
    if (!read_batch(c, txn, 0, err, &row)) {
        return;
    }
    BatchTotals totals = {{0}};
    const PGresult *res = db_txn_result(txn, 1);
    for (int i = 0; i < db_rows(res); i++) {
        Status status = STATUS_NONE;
        if (status_from_name(db_get_text(res, i, 0), &status)) {
            totals.of[status] = db_get_int(res, i, 1);
        }
    }
    batch_call_respond(c, 200, &row, &totals);
}

static void get_batch(ApiCall *base)
{
    BatchCall *c = arena_zalloc(base->http->arena, sizeof *c);
    *c = batch_call(base);
    if (!batch_call_has_id(c)) {
        return;
    }
    DbTxn *txn = batch_call_begin(c);
    batch_sql_get(txn, c->id);
    batch_sql_totals(txn, c->tenant, c->id);
    db_txn_submit(txn, on_db_got, c);
}

// ---- GET /v1/batches ----

typedef struct ListCall {
    BatchCall call;
    Page page;
} ListCall;

// One row more than fits was asked for. A page of long rows ends sooner.
static bool print_list(ListCall *c, const PGresult *res, Buf *out, Error *err)
{
    Str last = STR_EMPTY;
    int rows = db_rows(res);
    int i = 0;
    page_begin(out);
    for (; i < rows && c->page.made < c->page.limit && out->len < LIST_BYTES_MAX; i++) {
        BatchRow row;
        if (!batch_sql_read(res, i, c->call.arena, &row, err)) {
            return false;
        }
        page_item(&c->page, out);
        batch_json_print(out, &row, NULL, clock_now_us());
        last = row.id;
    }
    page_end(c->call.base, i < rows ? last : STR_EMPTY, out);
    return true;
}

static void on_db_listed(void *ctx, DbTxn *txn, const Error *err)
{
    ListCall *c = ctx;
    if (err != NULL) {
        api_answer_failure(c->call.base, err);
        return;
    }
    Buf out;
    Error broken = {0};
    buf_init(&out, LIST_BYTES_MAX + BODY_MAX);
    if (print_list(c, db_txn_result(txn, 0), &out, &broken)) {
        http_respond(c->call.base->http, 200, "application/json", buf_view(&out));
    } else {
        api_answer_failure(c->call.base, &broken);
    }
    buf_done(&out);
}

static void list_batches(ApiCall *base)
{
    ListCall *c = arena_zalloc(base->http->arena, sizeof *c);
    c->call = batch_call(base);
    Str status = http_query(base->http, "status");
    BatchStatus known = BATCH_NONE;
    if (status.len > 0 && !batch_status_from_name(status, &known)) {
        (void)api_refuse_field(
            base, "status", "not one of draft, scheduled, running, completed, cancelled, failed");
        return;
    }
    if (!page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &c->page)) {
        return;
    }
    DbTxn *txn = batch_call_begin(&c->call);
    batch_sql_list(txn, c->call.tenant, status, c->page.after, (int32_t)c->page.limit + 1);
    db_txn_submit(txn, on_db_listed, c);
}

// ---- POST /v1/batches/{}/<command> ----

typedef struct MoveCall {
    BatchCall call;
    BatchCommand command;
    int64_t scheduled_for_us;
    BatchState to;
    int tries;
} MoveCall;

static void read_and_move(MoveCall *c);

static void on_db_moved(void *ctx, DbTxn *txn, const Error *err)
{
    MoveCall *c = ctx;
    if (err == NULL && db_rows(db_txn_result(txn, 0)) == 0) {
        if (++c->tries < MOVE_TRIES) {
            read_and_move(c); // it changed in between
        } else {
            batch_call_conflict(&c->call, "other calls keep changing the batch; try again");
        }
        return;
    }
    BatchRow row;
    if (!read_batch(&c->call, txn, 0, err, &row)) {
        return;
    }
    LOG(LOG_INFO, "batch obeys a command", log_str("tenant", row.tenant), log_str("batch", row.id),
        log_text("command", batch_command_name(c->command)),
        log_text("status", batch_status_name(row.status)));
    if (row.status == BATCH_RUNNING && !row.paused) {
        batch_runner_wake(c->call.api->runner);
    }
    batch_call_respond(&c->call, 200, &row, NULL);
}

static bool check_move(MoveCall *c, const BatchRow *row)
{
    Error err = {0};
    if (!batch_decide((BatchState){row->status, row->paused}, c->command, &c->to, &err)) {
        batch_call_conflict(&c->call, err.text);
        return false;
    }
    bool empty = row->total == 0 && row->query.len == 0;
    bool begins = c->to.status == BATCH_SCHEDULED || c->to.status == BATCH_RUNNING;
    if (begins && empty) {
        batch_call_conflict(&c->call, "the batch has no members: upload them first");
        return false;
    }
    if (c->command == BATCH_DO_SCHEDULE && c->scheduled_for_us == 0) {
        c->scheduled_for_us = row->scheduled_for_us;
    }
    if (c->command == BATCH_DO_SCHEDULE && c->scheduled_for_us == 0) {
        return api_refuse_field(
            c->call.base, "scheduled_for", "required, for the batch has no time yet");
    }
    return true;
}

static void on_db_read(void *ctx, DbTxn *read, const Error *err)
{
    MoveCall *c = ctx;
    BatchRow row;
    if (!read_batch(&c->call, read, 0, err, &row) || !check_move(c, &row)) {
        return;
    }
    DbTxn *txn = batch_call_begin(&c->call);
    batch_sql_move(txn, row.id, (BatchState){row.status, row.paused}, c->to, c->scheduled_for_us);
    if (c->to.status == BATCH_CANCELLED) {
        batch_sql_drop_members(txn, row.id);
    }
    db_txn_submit(txn, on_db_moved, c);
}

static void read_and_move(MoveCall *c)
{
    DbTxn *txn = batch_call_begin(&c->call);
    batch_sql_get(txn, c->call.id);
    db_txn_submit(txn, on_db_read, c);
}

static void post_command(ApiCall *base)
{
    MoveCall *c = arena_zalloc(base->http->arena, sizeof *c);
    Problem problem = {0};
    c->call = batch_call(base);
    (void)batch_command_from_name(api_route_word(base), &c->command);
    if (!batch_call_has_id(&c->call)) {
        return;
    }
    if (c->command == BATCH_DO_SCHEDULE && !batch_json_schedule(
                                               base->http->body, base->http->received_at_us,
                                               c->call.arena, &c->scheduled_for_us, &problem)) {
        api_answer_problem(base, &problem);
        return;
    }
    read_and_move(c);
}

// ---- life ----

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/batches", SCOPE_BATCHES_WRITE, post_batch, NULL, false},
    {"GET", "/v1/batches", SCOPE_BATCHES_READ, list_batches, "limit cursor status", false},
    {"GET", "/v1/batches/{}", SCOPE_BATCHES_READ, get_batch, NULL, false},
    {"PUT", "/v1/batches/{}/members", SCOPE_BATCHES_WRITE, batches_part_put, "part", false},
    {"POST", "/v1/batches/{}/members", SCOPE_BATCHES_WRITE, batches_part_put, "part", false},
    {"POST", "/v1/batches/{}/schedule", SCOPE_BATCHES_WRITE, post_command, NULL, false},
    {"POST", "/v1/batches/{}/start", SCOPE_BATCHES_WRITE, post_command, NULL, false},
    {"POST", "/v1/batches/{}/pause", SCOPE_BATCHES_WRITE, post_command, NULL, false},
    {"POST", "/v1/batches/{}/resume", SCOPE_BATCHES_WRITE, post_command, NULL, false},
    {"POST", "/v1/batches/{}/cancel", SCOPE_BATCHES_WRITE, post_command, NULL, false},
};

void batches_api_add(Api *api, BatchesApi *batches, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &batches->slice);
    batches->slice.data = batches;
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], batches);
}

static void on_uv_closed(uv_handle_t *handle)
{
    BatchesApi *batches = handle->data;
    batches->on_closed(batches->closed_ctx);
}

void batches_api_close(BatchesApi *batches, void (*on_closed)(void *ctx), void *ctx)
{
    batches->on_closed = on_closed;
    batches->closed_ctx = ctx;
    uv_close((uv_handle_t *)&batches->slice, on_uv_closed);
}
