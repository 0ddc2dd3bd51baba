// SPDX-License-Identifier: Apache-2.0
#include "common/api/guards/idempotency.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"

enum {
    SCOPE_MAX = 256,
    ANSWER_MAX = 1024 * 1024, // of a body that is stored; a longer one is carried out again
    PATIENCE_US = 10 * 1000 * 1000,
    FORGET_EVERY_US = 60 * 1000 * 1000,
    FORGET_ROWS = 10000,
};

static const char ANSWER_FIELD[] = "idempotent_answer";

// clang-format off
static const DbStatement CLAIM = {"api_key_claim",
    "INSERT INTO gateway.idempotency_keys AS k (tenant_id, scope, idempotency_key, request_hash, claimed_until, created_at)"
    " VALUES ($1::text, $2::text, $3::text, $4::bytea, now() + make_interval(secs => $5::int8 / 1000.0), now())"
    " ON CONFLICT (tenant_id, scope, idempotency_key) DO UPDATE SET request_hash = excluded.request_hash,"
    "  claimed_until = excluded.claimed_until, response_status = NULL, response_body = NULL,"
    "  created_at = CASE WHEN k.created_at < now() - interval '24 hours' THEN excluded.created_at ELSE k.created_at END"
    " WHERE k.created_at < now() - interval '24 hours'"
    "  OR k.response_status IS NULL AND k.claimed_until < now() AND k.request_hash = excluded.request_hash"
    " RETURNING claimed_until, created_at"};
static const DbStatement READ = {"api_key_read",
    "SELECT request_hash = $4::bytea, response_status, response_type, location, etag, response_body"
    " FROM gateway.idempotency_keys WHERE tenant_id = $1::text AND scope = $2::text AND idempotency_key = $3::text"};
static const DbStatement STORE = {"api_key_store",
    "UPDATE gateway.idempotency_keys SET response_status = $5::smallint, response_type = $6::text, location = $7::text,"
    " etag = $8::text, response_body = $9::bytea WHERE tenant_id = $1::text AND scope = $2::text AND idempotency_key = $3::text"
    " AND claimed_until = $4::timestamptz"};
static const DbStatement RELEASE = {"api_key_release",
    "DELETE FROM gateway.idempotency_keys WHERE tenant_id = $1::text AND scope = $2::text AND idempotency_key = $3::text"
    " AND claimed_until = $4::timestamptz"};
static const DbStatement FORGET = {"api_key_forget",
    "SELECT gateway.forget_idempotency_keys(interval '24 hours', $1::int4)"};
enum { SAME, STATUS, TYPE, LOCATION, ETAG, BODY };
// clang-format on

// One call under a key; in the request's arena.
typedef struct IdempotentCall {
    Idempotency *of;
    ApiCall *call;
    char scope[SCOPE_MAX];
    Str key;
    uint8_t hash[SHA256_LEN];
    int64_t claimed_until_us; // of our claim
    int64_t since_us;         // of clock_mono_us()
    int status;
    const char *content_type;
    Str body;
    struct IdempotentCall *next;
} IdempotentCall;

// ---- the key ----

static bool is_printable(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x20 || text.ptr[i] > 0x7e) {
            return false;
        }
    }
    return true;
}

// An sf-string without its quotation marks and its escapes.
static Str unquote(Str text, Arena *arena)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 1; i + 1 < text.len; i++) {
        i += text.ptr[i] == '\\' && i + 2 < text.len ? 1 : 0;
        out[len++] = text.ptr[i];
    }
    return str_of(out, len);
}

bool idempotency_key_parse(Str header, Arena *arena, Str *ret)
{
    bool quoted = header.len >= 2 && header.ptr[0] == '"' && header.ptr[header.len - 1] == '"';
    Str key = quoted ? unquote(header, arena) : header;
    *ret = key;
    return is_printable(key) && key.len <= IDEMPOTENCY_KEY_MAX && (!quoted || key.len > 0);
}

bool idempotency_key_read(ApiCall *call, Str *ret)
{
    Str header = http_header(call->http, "Idempotency-Key");
    return idempotency_key_parse(header, call->http->arena, ret) ||
           api_refuse_field(
               call, "Idempotency-Key", "1 to %d printable ASCII characters",
               (int)IDEMPOTENCY_KEY_MAX);
}

bool idempotency_covers(const Idempotency *idempotency, const ApiCall *call)
{
    const ApiRoute *route = call->route;
    if (idempotency == NULL || strcmp(route->method, "POST") != 0 || call->tenant[0] == '\0' ||
        http_header(call->http, "Idempotency-Key").len == 0 ||
        str_ends(str_from(scope_name(route->scope)), STR(":read"))) {
        return false;
    }
    for (size_t i = 0; idempotency->own[i] != NULL; i++) {
        if (strcmp(route->path, idempotency->own[i]) == 0) {
            return false;
        }
    }
    return true;
}

// ---- what makes two requests the same ----

static void hash_request(IdempotentCall *c)
{
    HttpRequest *http = c->call->http;
    HttpArgument arguments[API_ARGUMENTS_MAX];
    json_error_t at;
    Buf text;
    size_t count = http_arguments(http, arguments, API_ARGUMENTS_MAX);
    json_t *body = api_json_load(http->body, JSON_DECODE_ANY, &at);
    Str canonical = body != NULL ? api_json_canonical(body, http->arena) : http->body;
    buf_init(&text, http->path.len + canonical.len + 64 * 1024);
    buf_str(&text, http->path);
    for (size_t i = 0; i < count && i < API_ARGUMENTS_MAX; i++) {
        buf_printf(
            &text, "\n%zu %zu " STR_FMT "=" STR_FMT, arguments[i].name.len, arguments[i].value.len,
            STR_ARG(arguments[i].name), STR_ARG(arguments[i].value));
    }
    buf_cstr(&text, "\n\n");
    buf_str(&text, canonical);
    sha256(buf_view(&text), c->hash);
    buf_done(&text);
    json_decref(body);
}

// ---- statements ----

static DbParams *begin(IdempotentCall *c, DbTxn *txn, const DbStatement *statement)
{
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_text(p, str_from(c->call->tenant));
    db_text(p, str_from(c->scope));
    db_text(p, c->key);
    return p;
}

static DbTxn *new_txn(const IdempotentCall *c)
{
    DbTxn *txn = db_txn_new(c->of->pool);
    db_txn_tenant(txn, str_from(c->call->tenant));
    return txn;
}

static DataKey *tenant_key(const IdempotentCall *c)
{
    return data_key_for_tenant(c->of->master, str_from(c->call->tenant));
}

// ---- the answer of the first ----

static void answer_now(IdempotentCall *c)
{
    http_respond_kept(c->call->http, c->status, c->content_type, c->body);
}

// The caller gets it however that went: what was made is made. If it was not stored, a repeat is
// carried out again once the claim has ended.
static void on_stored(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    IdempotentCall *c = ctx;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "an answer could not be kept for a repeat",
            log_text("request", c->call->http->id), log_text("tenant", c->call->tenant),
            log_error(err));
    }
    answer_now(c);
}

static const char *known_type(Str type)
{
    static const char *const types[] = {"application/json", "application/x-ndjson"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (str_eq(type, str_from(types[i]))) {
            return types[i];
        }
    }
    return NULL;
}

static Str pack_answer(const IdempotentCall *c)
{
    Str packed = STR_EMPTY;
    Arena *arena = c->call->http->arena;
    DataKey *key = tenant_key(c);
    Stentor__V1__Sealed *sealed =
        seal(key, str_from(c->call->tenant), c->key, ANSWER_FIELD, c->body, arena);
    data_key_free(key);
    return event_pack(&sealed->base, arena, &packed, NULL) ? packed : STR_EMPTY;
}

static void db_optional(DbParams *p, Str text)
{
    if (text.len > 0) {
        db_text(p, text);
    } else {
        db_null(p);
    }
}

static bool is_worth_storing(const IdempotentCall *c)
{
    bool typed = c->body.len == 0 || known_type(str_from(c->content_type)) != NULL;
    return c->status >= 200 && c->status <= 299 && c->body.len <= ANSWER_MAX && typed;
}

// In the place of the answer (HttpRequest.on_respond).
static void on_answer(void *ctx, int status, const char *content_type, Str body)
{
    IdempotentCall *c = ctx;
    c->status = status;
    c->content_type = content_type;
    c->body = body;
    bool store = is_worth_storing(c);
    if (store) {
        CRASH_POINT("gateway.answer_made");
    }
    DbTxn *txn = new_txn(c);
    DbParams *p = begin(c, txn, store ? &STORE : &RELEASE);
    db_time(p, c->claimed_until_us);
    if (store) {
        db_i32(p, status);
        db_optional(p, str_from(content_type != NULL ? content_type : ""));
        db_optional(p, http_response_header_of(c->call->http, "Location"));
        db_optional(p, http_response_header_of(c->call->http, "ETag"));
        db_bytes(p, pack_answer(c));
    }
    db_txn_submit(txn, on_stored, c);
}

// ---- a repeat ----

static void replay(IdempotentCall *c, const PGresult *rows)
{
    HttpRequest *http = c->call->http;
    Str plain = STR_EMPTY;
    Error err = {0};
    const Stentor__V1__Sealed *sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, db_get_text(rows, 0, BODY), http->arena, &err);
    DataKey *key = tenant_key(c);
    bool ok = sealed != NULL && unseal(
                                    key, str_from(c->call->tenant), c->key, ANSWER_FIELD, sealed,
                                    http->arena, &plain, &err);
    data_key_free(key);
    if (!ok) {
        api_answer_failure(c->call, &err);
        return;
    }
    http_response_header(http, "Idempotent-Replayed", STR("true"));
    if (!db_is_null(rows, 0, LOCATION)) {
        http_response_header(http, "Location", db_get_text(rows, 0, LOCATION));
    }
    if (!db_is_null(rows, 0, ETAG)) {
        http_response_header(http, "ETag", db_get_text(rows, 0, ETAG));
    }
    const char *type = db_is_null(rows, 0, TYPE) ? NULL : known_type(db_get_text(rows, 0, TYPE));
    http_respond_kept(http, (int)db_get_int(rows, 0, STATUS), type, plain);
}

static void answer_conflict(IdempotentCall *c)
{
    metric_add(c->call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        c->call->http, 409, "idempotency-conflict",
        "The idempotency key belongs to another request", "Idempotency-Key",
        "this key came with another path, query or body within 24 hours; choose a new key");
}

static void wait_for_first(IdempotentCall *c)
{
    if (clock_mono_us() - c->since_us > PATIENCE_US) {
        api_answer_unavailable(
            c->call, "the first request with this idempotency key is still being worked on");
        return;
    }
    c->next = c->of->waiting;
    c->of->waiting = c;
}

static void on_claimed(void *ctx, DbTxn *txn, const Error *err)
{
    IdempotentCall *c = ctx;
    if (err != NULL) {
        api_answer_failure(c->call, err);
        return;
    }
    const PGresult *claim = db_txn_result(txn, 0);
    const PGresult *rows = db_txn_result(txn, 1);
    if (db_rows(claim) > 0) {
        CRASH_POINT("gateway.answer_claimed");
        c->claimed_until_us = db_get_time(claim, 0, 0);
        c->call->claimed_at_us = db_get_time(claim, 0, 1);
        c->call->http->on_respond = on_answer;
        c->call->http->on_respond_ctx = c;
        c->call->route->handle(c->call);
    } else if (db_rows(rows) == 0) {
        wait_for_first(c); // it was refused meanwhile: the next try claims the key
    } else if (db_get_int(rows, 0, SAME) == 0) {
        answer_conflict(c);
    } else if (db_is_null(rows, 0, STATUS)) {
        wait_for_first(c);
    } else {
        replay(c, rows);
    }
}

static void claim(IdempotentCall *c)
{
    DbTxn *txn = new_txn(c);
    Str hash = str_of((const char *)c->hash, sizeof c->hash);
    DbParams *p = begin(c, txn, &CLAIM);
    db_bytes(p, hash);
    db_i64(p, c->of->lease_ms);
    p = begin(c, txn, &READ);
    db_bytes(p, hash);
    db_txn_submit(txn, on_claimed, c);
}

void idempotency_run(Idempotency *idempotency, ApiCall *call)
{
    IdempotentCall *c = arena_zalloc(call->http->arena, sizeof *c);
    c->of = idempotency;
    c->call = call;
    c->since_us = clock_mono_us();
    if (!idempotency_key_read(call, &c->key)) {
        return;
    }
    (void)str_to_c(
        str_from(arena_printf(call->http->arena, "POST %s", call->route->path)), c->scope,
        sizeof c->scope);
    hash_request(c);
    claim(c);
}

// ---- ticks ----

static void on_forgotten(void *ctx, DbTxn *txn, const Error *err)
{
    (void)ctx;
    (void)txn;
    if (err != NULL && err->kind != ERROR_TRANSIENT && err->kind != ERROR_CANCELLED) {
        LOG(LOG_ERROR, "old idempotency keys could not be dropped", log_error(err));
    }
}

static void forget(Idempotency *idempotency)
{
    int64_t now_us = clock_mono_us();
    if (now_us - idempotency->forgotten_us < FORGET_EVERY_US || !db_pool_ready(idempotency->pool)) {
        return;
    }
    idempotency->forgotten_us = now_us;
    DbTxn *txn = db_txn_new(idempotency->pool);
    db_i32(db_txn_add(txn, &FORGET, NULL), FORGET_ROWS);
    db_txn_submit(txn, on_forgotten, NULL);
}

void idempotency_tick(Idempotency *idempotency)
{
    IdempotentCall *waiting = idempotency->waiting;
    idempotency->waiting = NULL;
    while (waiting != NULL) {
        IdempotentCall *next = waiting->next;
        claim(waiting);
        waiting = next;
    }
    forget(idempotency);
}
