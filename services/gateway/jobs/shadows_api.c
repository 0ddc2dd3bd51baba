// SPDX-License-Identifier: Apache-2.0
// Killed between the row and the answer: the job is there, and under an Idempotency-Key the repeat
// finds it by its id; without one it is in the list.
#include "services/gateway/jobs/shadows_api.h"

#include "common/api/api_json.h"
#include "common/api/guards/idempotency.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/request/semver.h"
#include "services/gateway/jobs/job_view.h"

#define PLATFORM STR("platform")

static const int64_t DAY_US = INT64_C(86400) * 1000000;

typedef struct ShadowCall {
    ApiCall *call;
    const ShadowsApi *api;
    char id[ID_SIZE];
    Str version;
    Str version_tenant; // the call's, or the platform
    Channel channel;
    int64_t days, limit;
} ShadowCall;

// clang-format off
#define COLUMNS "id, state, parameters->>'template', parameters->>'version', parameters->>'channel', (parameters->>'days')::int4," \
    " (parameters->>'limit')::int4, asked_by, created_at, started_at, finished_at, tries, error, progress::text, "
static const DbStatement MAKE = {"shadow_make",
    "INSERT INTO gateway.jobs (id, tenant_id, kind, parameters, asked_by)"
    " VALUES ($1::text, $2::text, 'shadow', $3::jsonb, $4::text) ON CONFLICT DO NOTHING"};
static const DbStatement SHOW = {"shadow_show",
    "SELECT " COLUMNS "result::text FROM gateway.jobs WHERE id = $1::text AND tenant_id = $2::text AND kind = 'shadow'"};
static const DbStatement LIST = {"shadow_list",
    "SELECT " COLUMNS "NULL::text FROM gateway.jobs WHERE tenant_id = $1::text AND kind = 'shadow'"
    " AND ($2::text = '' OR parameters->>'template' = $2::text) AND ($3::text = '' OR id < $3::text) ORDER BY id DESC LIMIT $4::int4"};
static const DbStatement CANCEL = {"shadow_cancel", "SELECT gateway.cancel_job($1::text, $2::text, 'shadow')"};
// clang-format on
enum {
    COLUMN_ID,
    COLUMN_STATE,
    COLUMN_TEMPLATE,
    COLUMN_VERSION,
    COLUMN_CHANNEL,
    COLUMN_DAYS,
    COLUMN_LIMIT,
    COLUMN_ASKED_BY,
    COLUMN_CREATED,
    COLUMN_STARTED,
    COLUMN_FINISHED,
    COLUMN_TRIES,
    COLUMN_ERROR,
    COLUMN_PROGRESS,
    COLUMN_RESULT,
};

// ---- a job as JSON ----

static json_t *number_of(const PGresult *rows, int row, int column)
{
    return json_integer((json_int_t)db_get_int(rows, row, column));
}

static json_t *shadow_json(const PGresult *rows, int row)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", job_text(rows, row, COLUMN_ID));
    (void)json_object_set_new(object, "state", job_text(rows, row, COLUMN_STATE));
    (void)json_object_set_new(object, "template", job_text(rows, row, COLUMN_TEMPLATE));
    (void)json_object_set_new(object, "version", job_text(rows, row, COLUMN_VERSION));
    (void)json_object_set_new(object, "channel", job_text(rows, row, COLUMN_CHANNEL));
    (void)json_object_set_new(object, "days", number_of(rows, row, COLUMN_DAYS));
    (void)json_object_set_new(object, "limit", number_of(rows, row, COLUMN_LIMIT));
    (void)json_object_set_new(object, "asked_by", job_text(rows, row, COLUMN_ASKED_BY));
    (void)json_object_set_new(object, "created_at", job_time(rows, row, COLUMN_CREATED));
    (void)json_object_set_new(object, "started_at", job_time(rows, row, COLUMN_STARTED));
    (void)json_object_set_new(object, "finished_at", job_time(rows, row, COLUMN_FINISHED));
    (void)json_object_set_new(object, "tries", number_of(rows, row, COLUMN_TRIES));
    (void)json_object_set_new(object, "error", job_text(rows, row, COLUMN_ERROR));
    (void)json_object_set_new(object, "progress", job_json(rows, row, COLUMN_PROGRESS));
    (void)json_object_set_new(object, "result", job_json(rows, row, COLUMN_RESULT));
    return object;
}

static void add_show(DbTxn *txn, const ApiCall *call, Str id)
{
    DbParams *p = db_txn_add(txn, &SHOW, NULL);
    db_text(p, id);
    db_text(p, str_from(call->tenant));
}

static DbTxn *new_txn(const ApiCall *call)
{
    const ShadowsApi *api = call->ctx;
    DbTxn *txn = db_txn_new(api->pool);
    db_txn_tenant(txn, str_from(call->tenant));
    return txn;
}

// Of the path; no id that could be stored is longer.
static Str id_asked(const ApiCall *call)
{
    Str id = str_slice(call->params[0], 0, ID_SIZE);
    return str_is_utf8(id) ? id : STR("?");
}

static void answer_one(ApiCall *call, const PGresult *rows)
{
    if (db_rows(rows) > 0) {
        api_answer_json(call, 200, shadow_json(rows, 0));
        return;
    }
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "shadow '" STR_FMT "' of tenant '%s'", STR_ARG(id_asked(call)),
                  call->tenant));
}

// ---- POST ----

static void on_made(void *ctx, DbTxn *txn, const Error *err)
{
    const ShadowCall *shadow = ctx;
    ApiCall *call = shadow->call;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    if (db_rows(rows) == 0) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "too-many-jobs", "Too many jobs are under way", NULL,
            "the tenant has a shadow that has not ended; cancel it, or ask again when it has");
        return;
    }
    job_runner_soon(shadow->api->runner);
    const char *path = arena_printf(call->http->arena, "/v1/shadows/%s", shadow->id);
    http_response_header(call->http, "Location", str_from(path));
    api_answer_json(call, 202, shadow_json(rows, 0));
}

static bool read_body(ShadowCall *shadow)
{
    ApiBody body = {0};
    ApiCall *call = shadow->call;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        bool named = api_read_text(&body, "version", SEMVER_MAX, &shadow->version);
        if (named && !semver_is(shadow->version)) {
            (void)api_body_fail(&body, "version", "required: the version to try, such as 1.2.0");
        }
        (void)api_read_int(&body, "days", 1, SHADOW_DAYS_MAX, &shadow->days);
        (void)api_read_int(&body, "limit", 1, SHADOW_LIMIT_MAX, &shadow->limit);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static bool read_channel(ShadowCall *shadow)
{
    Str name = http_query(shadow->call->http, "channel");
    if (name.len == 0 || channel_from_name(name, &shadow->channel)) {
        return true;
    }
    api_answer_parameter(shadow->call, "channel", "not a channel: " CHANNEL_NAMES);
    return false;
}

// The channel that was asked for, else the key's only one. CHANNEL_NONE: it has none, or several.
static Channel choose_channel(Channel asked, ChannelSet channels)
{
    Channel found = asked;
    for (int c = CHANNEL_EMAIL; asked == CHANNEL_NONE && c < CHANNEL_COUNT; c++) {
        if (channel_set_has(channels, (Channel)c)) {
            found = found == CHANNEL_NONE ? (Channel)c : CHANNEL_COUNT;
        }
    }
    return found < CHANNEL_COUNT ? found : CHANNEL_NONE;
}

// The tenant's own, else the platform's. false: answered.
static bool find_version(ShadowCall *shadow)
{
    ApiCall *call = shadow->call;
    const Str tenants[] = {str_from(call->tenant), PLATFORM};
    for (size_t i = 0; i < 2; i++) {
        ChannelSet channels = catalog_channels(shadow->api->catalog, tenants[i], call->params[0]);
        Channel channel = choose_channel(shadow->channel, channels);
        if (channels != 0 && channel == CHANNEL_NONE) {
            char names[CHANNEL_SET_TEXT_SIZE];
            channel_set_text(channels, names);
            api_answer_parameter(call, "channel", "the template is there for %s: say which", names);
            return false;
        }
        CatalogVersion found;
        CatalogName name = {call->params[0], channel};
        if (channels != 0 &&
            catalog_find(shadow->api->catalog, tenants[i], name, shadow->version, &found)) {
            shadow->version_tenant = tenants[i];
            shadow->channel = channel;
            return true;
        }
    }
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "template '" STR_FMT "' version " STR_FMT,
                  STR_ARG(str_slice(call->params[0], 0, 64)), STR_ARG(shadow->version)));
    return false;
}

// Under an Idempotency-Key the same in each repeat that is carried out again.
static void choose_id(ShadowCall *shadow)
{
    ApiCall *call = shadow->call;
    uint8_t digest[SHA256_LEN];
    Str key = STR_EMPTY;
    (void)idempotency_key_parse(
        http_header(call->http, "Idempotency-Key"), call->http->arena, &key);
    if (key.len == 0 || call->claimed_at_us == 0) {
        id_new(JOB_PREFIX, call->http->received_at_us, shadow->id);
        return;
    }
    Str cause =
        str_from(arena_printf(call->http->arena, "shadow|%s|" STR_FMT, call->tenant, STR_ARG(key)));
    sha256(cause, digest);
    id_derived(JOB_PREFIX, call->claimed_at_us, digest, shadow->id);
}

static Str parameters_of(const ShadowCall *shadow)
{
    char from[CLOCK_RFC3339_SIZE];
    const ApiCall *call = shadow->call;
    clock_format(call->http->received_at_us - shadow->days * DAY_US, from);
    json_t *parameters = json_pack(
        "{s:s%, s:s%, s:s%, s:s, s:I, s:I, s:s}", "template", call->params[0].ptr,
        call->params[0].len, "version", shadow->version.ptr, shadow->version.len, "version_tenant",
        shadow->version_tenant.ptr, shadow->version_tenant.len, "channel",
        channel_name(shadow->channel), "days", (json_int_t)shadow->days, "limit",
        (json_int_t)shadow->limit, "from", from);
    Str text = api_json_canonical(parameters, call->http->arena);
    json_decref(parameters);
    return text;
}

static void post_shadow(ApiCall *call)
{
    ShadowCall *shadow = arena_zalloc(call->http->arena, sizeof *shadow);
    shadow->call = call;
    shadow->api = call->ctx;
    shadow->days = SHADOW_DAYS;
    shadow->limit = SHADOW_LIMIT;
    if (!read_channel(shadow) || !read_body(shadow) || !find_version(shadow)) {
        return;
    }
    choose_id(shadow);
    DbTxn *txn = new_txn(call);
    DbParams *p = db_txn_add(txn, &MAKE, NULL);
    db_text(p, str_from(shadow->id));
    db_text(p, str_from(call->tenant));
    db_text(p, parameters_of(shadow));
    db_text(p, str_from(call->actor));
    add_show(txn, call, str_from(shadow->id));
    db_txn_submit(txn, on_made, shadow);
}

// ---- GET ----

static void on_shown(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
    } else {
        answer_one(call, db_txn_result(txn, 0));
    }
}

static void get_shadow(ApiCall *call)
{
    DbTxn *txn = new_txn(call);
    add_show(txn, call, id_asked(call));
    db_txn_submit(txn, on_shown, call);
}

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
        (void)json_array_append_new(list, shadow_json(rows, i));
    }
    page_answer(
        listing->call, list,
        db_rows(rows) > shown ? db_get_text(rows, shown - 1, COLUMN_ID) : STR_EMPTY);
}

static void get_shadows(ApiCall *call)
{
    Listing *listing = arena_zalloc(call->http->arena, sizeof *listing);
    listing->call = call;
    Str template_key = http_query(call->http, "template");
    if (template_key.len > 0 && !id_is_key(template_key)) {
        api_answer_parameter(call, "template", "not a template's key");
        return;
    }
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &listing->page)) {
        return;
    }
    DbTxn *txn = new_txn(call);
    DbParams *p = db_txn_add(txn, &LIST, NULL);
    db_text(p, str_from(call->tenant));
    db_text(p, template_key);
    db_text(p, listing->page.after);
    db_i32(p, (int32_t)listing->page.limit + 1);
    db_txn_submit(txn, on_listed, listing);
}

// ---- cancelling ----

static void on_cancelled(void *ctx, DbTxn *txn, const Error *err)
{
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
    } else {
        answer_one(call, db_txn_result(txn, 1));
    }
}

static void cancel_shadow(ApiCall *call)
{
    DbTxn *txn = new_txn(call);
    DbParams *p = db_txn_add(txn, &CANCEL, NULL);
    db_text(p, id_asked(call));
    db_text(p, str_from(call->tenant));
    add_show(txn, call, id_asked(call));
    db_txn_submit(txn, on_cancelled, call);
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/templates/{}/shadow", SCOPE_TEMPLATES_WRITE, post_shadow, "channel", false},
    {"GET", "/v1/shadows", SCOPE_TEMPLATES_READ, get_shadows, "limit cursor template", false},
    {"GET", "/v1/shadows/{}", SCOPE_TEMPLATES_READ, get_shadow, NULL, false},
    {"POST", "/v1/shadows/{}/cancel", SCOPE_TEMPLATES_WRITE, cancel_shadow, NULL, false},
};

void shadows_api_add(Api *api, ShadowsApi *shadows)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], shadows);
}
