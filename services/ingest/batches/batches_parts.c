// SPDX-License-Identifier: Apache-2.0
// PUT /v1/batches/{}/members?part=N: looks the batch up, reads the lines in slices, commits what
// they hold in one transaction.
#include <assert.h>
#include <inttypes.h>

#include "common/request/required.h"
#include "services/ingest/batches/batches_api.h"

enum { PART_MAX = 1000000 };

// Lives in the request's arena. What `upload` holds beside it is freed before the answer.
struct PartCall {
    PartCall *next;
    BatchCall call;
    int64_t part;
    BatchRow row;
    DataKey *key;
    json_t *variables; // the batch's own, where the template requires some; NULL: none
    Upload upload;
    uint8_t hash[SHA256_LEN];
};

static void finish(PartCall *c)
{
    upload_done(&c->upload);
    data_key_free(c->key);
    json_decref(c->variables);
    c->call.api->upload_count--;
}

// ---- the commit ----

static void respond(PartCall *c, bool repeated, int64_t members)
{
    Buf out;
    buf_init(&out, UPLOAD_BROKEN_BYTES_MAX + 1024);
    buf_cstr(&out, "{\"batch_id\":");
    buf_json(&out, c->call.id);
    buf_printf(
        &out,
        ",\"part\":%" PRId64 ",\"repeated\":%s,\"members\":%" PRId64 ",\"added\":%" PRId64
        ",\"broken\":%" PRId64 ",\"lines\":[",
        c->part, repeated ? "true" : "false", members, repeated ? 0 : c->upload.members,
        c->upload.broken);
    buf_str(&out, buf_view(&c->upload.lines));
    buf_cstr(&out, "]}");
    http_respond(c->call.base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void answer_outcome(PartCall *c, Str outcome, int64_t members, Str status)
{
    if (str_eq(outcome, STR("added")) || str_eq(outcome, STR("repeated"))) {
        respond(c, str_eq(outcome, STR("repeated")), members);
    } else if (str_eq(outcome, STR("missing"))) {
        batch_call_missing(&c->call);
    } else if (str_eq(outcome, STR("other_body"))) {
        batch_call_conflict(
            &c->call, "this part was uploaded before with other content; use another part number");
    } else if (str_eq(outcome, STR("full"))) {
        char *why =
            arena_printf(c->call.arena, "a batch has at most %d members", BATCH_MEMBERS_MAX);
        batch_call_conflict(&c->call, why);
    } else {
        char *why = arena_printf(
            c->call.arena, "the batch is %.*s; only a draft takes members", STR_ARG(status));
        batch_call_conflict(&c->call, why);
    }
}

static void on_db_added(void *ctx, DbTxn *txn, const Error *err)
{
    PartCall *c = ctx;
    if (err != NULL) {
        finish(c);
        api_answer_failure(c->call.base, err);
        return;
    }
    const PGresult *res = db_txn_result(txn, 0);
    PartCall held = *c; // the call ends with its answer, which shows the upload's list of lines
    answer_outcome(c, db_get_text(res, 0, 0), db_get_int(res, 0, 1), db_get_text(res, 0, 2));
    finish(&held);
}

static void commit(PartCall *c)
{
    DbTxn *txn = batch_call_begin(&c->call);
    batch_sql_add_part(
        txn, &(BatchPart){
                 .batch_id = c->call.id,
                 .part = c->part,
                 .hash = str_of(c->hash, sizeof c->hash),
                 .broken = c->upload.broken,
                 .counts = c->upload.counts,
                 .blobs = c->upload.blobs,
                 .chunks = c->upload.chunks,
             });
    db_txn_submit(txn, on_db_added, c);
}

// ---- reading ----

static void read_on_soon(BatchesApi *api)
{
    if (api->uploads != NULL && !uv_is_active((uv_handle_t *)&api->slice)) {
        (void)uv_timer_start(&api->slice, batches_part_on_slice, 0, 0);
    }
}

static void queue(PartCall *c)
{
    PartCall **at = &c->call.api->uploads;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    c->next = NULL;
    *at = c;
    read_on_soon(c->call.api);
}

static void read_slice(PartCall *c)
{
    bool ended = false;
    Error err = {0};
    if (!upload_step(&c->upload, &ended, &err)) {
        finish(c);
        (void)api_refuse_field(c->call.base, "body", "%s", err.text);
    } else if (ended) {
        commit(c);
    } else {
        queue(c); // behind the others
    }
}

void batches_part_on_slice(uv_timer_t *timer)
{
    BatchesApi *api = timer->data;
    PartCall *c = api->uploads;
    assert(c != NULL);
    api->uploads = c->next;
    read_slice(c);
    read_on_soon(api);
}

// ---- the batch ----

// The template's required variables and, when there are some, those that the batch itself has.
static bool read_required(PartCall *c, MemberRules *rules, Error *err)
{
    const Catalog *catalog = c->call.api->catalog;
    Str plain = STR_EMPTY;
    rules->required =
        required_copy(catalog_required(catalog, c->call.tenant, &rules->model), c->call.arena);
    if (rules->required == NULL || c->row.variables.len == 0) {
        return true;
    }
    if (!chunk_unseal_text(
            c->key, c->call.tenant, c->call.id, "variables", c->row.variables, c->call.arena,
            &plain, err)) {
        return false;
    }
    c->variables = json_loadb(plain.ptr, plain.len, 0, NULL);
    rules->defaults = c->variables;
    return true;
}

static bool begin_reading(PartCall *c, Error *err)
{
    const BatchRow *row = &c->row;
    HttpRequest *http = c->call.base->http;
    MemberRules rules = {
        .model =
            {
                .channel = row->channel,
                .category = row->category,
                .priority = row->priority,
                .template_key = row->template_key,
                .template_version = row->template_version,
                .locale = row->locale,
            },
        // What is sealed is a little longer than what was: on the safe side.
        .variables_max = REQUEST_VARIABLES_MAX - row->variables.len,
        .now_us = http->received_at_us,
    };
    ChunkPlace place = {.tenant = c->call.tenant, .batch_id = c->call.id, .part = c->part};
    c->key = data_key_for_tenant(c->call.api->master, c->call.tenant);
    if (!read_required(c, &rules, err)) {
        data_key_free(c->key);
        return false;
    }
    hmac_sha256(master_hash_key(c->call.api->master), http->body, c->hash);
    upload_init(&c->upload, &rules, c->key, &place, http->body, c->call.arena);
    queue(c);
    return true;
}

static void on_db_found(void *ctx, DbTxn *txn, const Error *err)
{
    PartCall *c = ctx;
    Error broken = {0};
    bool found = err == NULL && db_rows(db_txn_result(txn, 0)) > 0;
    bool read = found && batch_sql_read(db_txn_result(txn, 0), 0, c->call.arena, &c->row, &broken);
    bool chooses = read && c->row.query.len > 0;
    if (read && !chooses && begin_reading(c, &broken)) {
        return;
    }
    c->call.api->upload_count--;
    if (chooses) {
        batch_call_conflict(
            &c->call, "the batch chooses its members by its recipient_query; it takes no others");
        return;
    }
    if (err != NULL || found) {
        api_answer_failure(c->call.base, err != NULL ? err : &broken);
    } else {
        batch_call_missing(&c->call);
    }
}

static bool check_part(PartCall *c)
{
    FieldError wrong = {.field = ""};
    if (!batch_call_has_id(&c->call)) {
        return false;
    }
    Str part = http_query(c->call.base->http, "part");
    if (!str_to_i64(part, &c->part) || c->part < 1 || c->part > PART_MAX) {
        (void)field_error(
            &wrong, "part",
            "required: ?part=N, 1 to %d; a part that is sent again is recognised by it", PART_MAX);
        api_answer_field(c->call.base, &wrong);
        return false;
    }
    if (c->call.api->upload_count >= BATCH_UPLOADS_MAX) {
        api_answer_unavailable(c->call.base, "other parts are being read; send this one again");
        return false;
    }
    return true;
}

void batches_part_put(ApiCall *base)
{
    PartCall *c = arena_zalloc(base->http->arena, sizeof *c);
    c->call = batch_call(base);
    if (!check_part(c)) {
        return;
    }
    c->call.api->upload_count++;
    DbTxn *txn = batch_call_begin(&c->call);
    batch_sql_get(txn, c->call.id);
    db_txn_submit(txn, on_db_found, c);
}
