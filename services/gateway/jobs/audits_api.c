// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/audits_api.h"

#include <inttypes.h>

#include "common/api/api_json.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "services/gateway/jobs/job_view.h"

enum { KEY_MAX = 128, GRACE_S = 30, GRACE_S_MAX = 86400 };
static const int64_t DAY_US = INT64_C(86400) * 1000000;

typedef struct AuditCall {
    ApiCall *call;
    const AuditsApi *api;
    char id[ID_SIZE];
    int64_t from_us, to_us, grace_s;
    Str asked; // the body, in one form for the same values
} AuditCall;

// clang-format off
static const DbStatement MAKE = {"job_make",
    "INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, asked_by) SELECT $1::text, $2::text, 'audit', $3::jsonb, $4::text"
    " WHERE (SELECT count(*) FROM gateway.jobs WHERE tenant_id = $2::text AND state IN ('waiting', 'running')) < $5::int4"
    " ON CONFLICT (id) DO NOTHING RETURNING 1"};
#define COLUMNS "id, state, parameters->>'from', parameters->>'to', parameters->>'asked', asked_by, created_at, started_at, finished_at, tries, error, result::text"
static const DbStatement SHOW = {"job_show",
    "SELECT " COLUMNS " FROM gateway.jobs WHERE id = $1::text AND tenant_id = $2::text AND kind = 'audit'"};
// Ids that a key leads to have no time: created_at orders, and the id where two are of one moment.
// Ended ones go after 30 days, so a tenant's are few.
static const DbStatement LIST = {"audits_list",
    "SELECT " COLUMNS " FROM gateway.jobs WHERE tenant_id = $1::text AND kind = 'audit'"
    " AND ($2::timestamptz IS NULL OR (created_at, id) < ($2::timestamptz, $3::text)) ORDER BY created_at DESC, id DESC LIMIT $4::int4"};
// clang-format on
enum {
    COLUMN_ID,
    COLUMN_STATE,
    COLUMN_FROM,
    COLUMN_TO,
    COLUMN_ASKED,
    COLUMN_ASKED_BY,
    COLUMN_CREATED,
    COLUMN_STARTED,
    COLUMN_FINISHED,
    COLUMN_TRIES,
    COLUMN_ERROR,
    COLUMN_RESULT,
};

// ---- a job as JSON ----

static json_t *audit_json(const PGresult *rows, int row)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", job_text(rows, row, COLUMN_ID));
    (void)json_object_set_new(object, "state", job_text(rows, row, COLUMN_STATE));
    (void)json_object_set_new(object, "from", job_text(rows, row, COLUMN_FROM));
    (void)json_object_set_new(object, "to", job_text(rows, row, COLUMN_TO));
    (void)json_object_set_new(object, "asked_by", job_text(rows, row, COLUMN_ASKED_BY));
    (void)json_object_set_new(object, "created_at", job_time(rows, row, COLUMN_CREATED));
    (void)json_object_set_new(object, "started_at", job_time(rows, row, COLUMN_STARTED));
    (void)json_object_set_new(object, "finished_at", job_time(rows, row, COLUMN_FINISHED));
    (void)json_object_set_new(
        object, "tries", json_integer((json_int_t)db_get_int(rows, row, COLUMN_TRIES)));
    (void)json_object_set_new(object, "error", job_text(rows, row, COLUMN_ERROR));
    (void)json_object_set_new(object, "result", job_json(rows, row, COLUMN_RESULT));
    return object;
}

// As it was when it was made: what a repeat is answered, too.
static json_t *new_job_json(const PGresult *rows)
{
    static const char *const later[] = {"started_at", "finished_at", "error", "result"};
    json_t *object = audit_json(rows, 0);
    (void)json_object_set_new(object, "state", json_string("waiting"));
    (void)json_object_set_new(object, "tries", json_integer(0));
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        (void)json_object_set_new(object, later[i], json_null());
    }
    return object;
}

static void add_show(DbTxn *txn, const ApiCall *call, const char *id)
{
    DbParams *p = db_txn_add(txn, &SHOW, NULL);
    db_text(p, str_from(id));
    db_text(p, str_from(call->tenant));
}

// ---- POST ----

static void on_made(void *ctx, DbTxn *txn, const Error *err)
{
    const AuditCall *audit = ctx;
    ApiCall *call = audit->call;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    if (db_rows(rows) == 0) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "too-many-jobs", "Too many jobs are under way", NULL,
            "the tenant has %d that have not ended; ask again when one has", (int)JOBS_OPEN_MAX);
        return;
    }
    if (!str_eq(db_get_text(rows, 0, COLUMN_ASKED), audit->asked)) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "idempotency-conflict",
            "The idempotency key belongs to another request", "Idempotency-Key",
            "this key came with another body before; choose a new key");
        return;
    }
    job_runner_soon(audit->api->runner);
    if (db_rows(db_txn_result(txn, 0)) == 0) {
        http_response_header(call->http, "Idempotent-Replayed", STR("true"));
    }
    const char *path = arena_printf(call->http->arena, "/v1/ops/audits/%s", audit->id);
    http_response_header(call->http, "Location", str_from(path));
    api_answer_json(call, 202, new_job_json(rows));
}

static bool read_body(AuditCall *audit)
{
    ApiBody body = {0};
    ApiCall *call = audit->call;
    bool empty = call->http->body.len == 0;
    bool ok = api_body_parse(&body, empty ? STR("{}") : call->http->body, call->http->arena);
    int64_t now_us = call->http->received_at_us;
    audit->to_us = now_us;
    audit->grace_s = GRACE_S;
    if (ok) {
        audit->asked = api_json_canonical(body.root, call->http->arena);
        (void)api_read_time(&body, "to", &audit->to_us);
        audit->from_us = audit->to_us - DAY_US;
        (void)api_read_time(&body, "from", &audit->from_us);
        (void)api_read_int(&body, "grace_s", 0, GRACE_S_MAX, &audit->grace_s);
        if (api_body_good(&body) && audit->from_us >= audit->to_us) {
            (void)api_body_fail(&body, "from", "must be before `to`");
        }
        if (api_body_good(&body) && audit->to_us - audit->from_us > AUDIT_DAYS * DAY_US) {
            (void)api_body_fail(
                &body, "from", "at most %d days before `to`; `stentor audit` takes more",
                (int)AUDIT_DAYS);
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// An Idempotency-Key leads to one job of the tenant. false: answered.
static bool choose_id(AuditCall *audit)
{
    ApiCall *call = audit->call;
    uint8_t digest[SHA256_LEN];
    Str key = http_header(call->http, "Idempotency-Key");
    if (key.len == 0) {
        id_new(JOB_PREFIX, call->http->received_at_us, audit->id);
        return true;
    }
    if (key.len > KEY_MAX || str_has_control(key) || !str_is_utf8(key)) {
        return api_refuse_field(
            call, "Idempotency-Key", "at most %d printable characters", KEY_MAX);
    }
    Str cause =
        str_from(arena_printf(call->http->arena, "audit|%s|" STR_FMT, call->tenant, STR_ARG(key)));
    sha256(cause, digest);
    id_derived(JOB_PREFIX, 0, digest, audit->id);
    return true;
}

// Ids have milliseconds.
static json_t *moment(int64_t at_us)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(at_us - at_us % 1000, at);
    return json_string(at);
}

static void post_audit(ApiCall *call)
{
    AuditCall *audit = arena_zalloc(call->http->arena, sizeof *audit);
    audit->call = call;
    audit->api = call->ctx;
    if (!read_body(audit) || !choose_id(audit)) {
        return;
    }
    json_t *parameters = json_object();
    (void)json_object_set_new(parameters, "from", moment(audit->from_us));
    (void)json_object_set_new(parameters, "to", moment(audit->to_us));
    (void)json_object_set_new(parameters, "grace_s", json_integer((json_int_t)audit->grace_s));
    (void)json_object_set_new(
        parameters, "asked", json_stringn(audit->asked.ptr, audit->asked.len));
    DbTxn *txn = db_txn_new(audit->api->pool);
    db_txn_tenant(txn, str_from(call->tenant));
    DbParams *p = db_txn_add(txn, &MAKE, NULL);
    db_text(p, str_from(audit->id));
    db_text(p, str_from(call->tenant));
    db_text(p, api_json_canonical(parameters, call->http->arena));
    db_text(p, str_from(api_caller_name(call)));
    db_i32(p, JOBS_OPEN_MAX);
    json_decref(parameters);
    add_show(txn, call, audit->id);
    db_txn_submit(txn, on_made, audit);
}

// ---- GET ----

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    Arena *arena = call->http->arena;
    if (err != NULL) {
        api_answer_failure(call, err);
    } else if (db_rows(db_txn_result(txn, 0)) == 0) {
        api_answer_missing(
            call, arena_printf(
                      arena, "audit '" STR_FMT "' of tenant '%s'",
                      STR_ARG(str_slice(call->params[0], 0, ID_SIZE)), call->tenant));
    } else {
        api_answer_json(call, 200, audit_json(db_txn_result(txn, 0), 0));
    }
}

static void get_audit(ApiCall *call)
{
    const AuditsApi *api = call->ctx;
    DbTxn *txn = db_txn_new(api->pool);
    Str id = str_slice(call->params[0], 0, ID_SIZE);
    db_txn_tenant(txn, str_from(call->tenant));
    add_show(txn, call, arena_cstr(call->http->arena, str_is_utf8(id) ? id : STR("?")));
    db_txn_submit(txn, on_shown, call);
}

// ---- the list ----

typedef struct Listing {
    ApiCall *call;
    Page page;
} Listing;

static void on_listed(void *ctx, DbTxn *txn, const Error *err)
{
    const Listing *listing = ctx;
    if (err != NULL) {
        api_answer_failure(listing->call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    int shown = db_rows(rows) > (int)listing->page.limit ? (int)listing->page.limit : db_rows(rows);
    json_t *list = json_array();
    for (int i = 0; i < shown; i++) {
        (void)json_array_append_new(list, audit_json(rows, i));
    }
    const char *last = "";
    if (db_rows(rows) > shown) { // one more than fits was asked for
        last = arena_printf(
            listing->call->http->arena, "%" PRId64 "/" STR_FMT,
            db_get_time(rows, shown - 1, COLUMN_CREATED),
            STR_ARG(db_get_text(rows, shown - 1, COLUMN_ID)));
    }
    page_answer(listing->call, list, str_from(last));
}

static void get_audits(ApiCall *call)
{
    const AuditsApi *api = call->ctx;
    Listing *listing = arena_zalloc(call->http->arena, sizeof *listing);
    listing->call = call;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &listing->page)) {
        return;
    }
    Str rest = listing->page.after; // "<created at, us>/<id>"; nothing of it comes from the caller
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
    db_i32(p, (int32_t)listing->page.limit + 1);
    db_txn_submit(txn, on_listed, listing);
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/ops/audits", SCOPE_OPS_READ, post_audit, NULL, false},
    {"GET", "/v1/ops/audits", SCOPE_OPS_READ, get_audits, "limit cursor", false},
    {"GET", "/v1/ops/audits/{}", SCOPE_OPS_READ, get_audit, NULL, false},
};

void audits_api_add(Api *api, AuditsApi *audits)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], audits);
}
