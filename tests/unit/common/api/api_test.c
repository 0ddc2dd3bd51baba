// SPDX-License-Identifier: Apache-2.0
// The table of routes behind a real server: one plain socket a request.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/api/api.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "stentor/v1/config.pb-c.h"

#define KEY "stn_k1.secret"
#define READER "stn_k2.secret"
#define STRANGER "stn_k3.secret" // of another tenant
#define OPERATOR "stn_k5.secret"
#define PLATFORM "stn_k6.secret"

enum { PATIENCE_US = 5 * 1000 * 1000 };

typedef struct Scene {
    uv_loop_t loop;
    HttpServer *server;
    Metrics *registry;
    ApiMetrics metrics;
    Auth *auth;
    Catalog *catalog;
    Api api;
    const char *unready;
    bool freed;
    Arena *arena;
    Buf answer;
} Scene;

static const char *unready(void *ctx)
{
    return ((Scene *)ctx)->unready;
}

// Tells what it was called with.
static void tell(ApiCall *call, const char *who)
{
    char *text = arena_printf(
        call->http->arena, "%s|%s|" STR_FMT "|" STR_FMT "|" STR_FMT, who, call->tenant,
        STR_ARG(call->key_id), STR_ARG(call->params[0]), STR_ARG(call->params[1]));
    http_respond(call->http, 200, "text/plain", str_from(text));
}

static void get_thing(ApiCall *call)
{
    tell(call, "get");
}

static void put_thing(ApiCall *call)
{
    tell(call, "put");
}

static void get_part(ApiCall *call)
{
    tell(call, "part");
}

static void post_fixed(ApiCall *call)
{
    tell(call, "fixed");
}

static void get_failing(ApiCall *call)
{
    Error err = {0};
    bool transient = str_eq(call->params[0], STR("transient"));
    (void)error_set(&err, transient ? ERROR_TRANSIENT : ERROR_PERMANENT, "the inner reason");
    api_answer_failure(call, &err);
}

static void get_missing(ApiCall *call)
{
    api_answer_missing(call, "thing 'x'");
}

// The numbers from 1 to 5.
static void get_numbers(ApiCall *call)
{
    Page page;
    int64_t number = 0;
    if (!page_read(call, 2, 4, &page)) {
        return;
    }
    assert_true(page.after.len == 0 || str_to_i64(page.after, &number));
    Buf out;
    buf_init(&out, 1024);
    page_begin(&out);
    while (page.made < page.limit && number < 5) {
        page_item(&page, &out);
        buf_printf(&out, "%d", (int)++number);
    }
    const char *last = arena_printf(call->http->arena, "%d", (int)number);
    page_end(call, number < 5 ? str_from(last) : STR_EMPTY, &out);
    http_respond(call->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static const ApiRoute FIRST[] = {
    {"GET", "/v1/things/{}", SCOPE_TRIGGERS_READ, get_thing, NULL, false},
    {"PUT", "/v1/things/{}", SCOPE_TRIGGERS_WRITE, put_thing, NULL, false},
    {"GET", "/v1/things/{}/parts/{}", SCOPE_TRIGGERS_READ, get_part, "x z", false},
};
static const ApiRoute SECOND[] = {
    {"POST", "/v1/things/fixed", SCOPE_TRIGGERS_WRITE, post_fixed, NULL, false},
    {"GET", "/v1/failing/{}", SCOPE_TRIGGERS_READ, get_failing, NULL, false},
    {"GET", "/v1/missing", SCOPE_TRIGGERS_READ, get_missing, NULL, false},
    {"GET", "/v1/numbers", SCOPE_TRIGGERS_READ, get_numbers, "limit cursor kind state", false},
    {"GET", "/v1/{}/numbers", SCOPE_TRIGGERS_READ, get_numbers, "limit cursor kind state", false},
    {"POST", "/v1/sent", SCOPE_NOTIFICATIONS_SEND, post_fixed, NULL, false},
};

static void get_open(ApiCall *call)
{
    assert_int_equal(call->tenant[0], '\0');
    tell(call, "open");
}

static const ApiRoute OPEN[] = {
    {"GET", "/v1/document", SCOPE_NONE, get_open, NULL, false},
};
static const ApiRoute THIRD[] = {
    {"PUT", "/v1/entries/{}", SCOPE_TENANTS_OPERATE, put_thing, "b a", true},
};
static const ApiOther OTHERS[] = {
    {"GET", "/v1/pages/{}", "none", NULL},
    {"GET", "/v1/inbox", "inbox", "limit"},
};

static void add_key(
    Scene *s, const char *tenant, const char *id, const char *text, const char *scope)
{
    char *scopes[] = {arena_cstr(s->arena, str_from(scope))};
    uint8_t hash[SHA256_LEN];
    Stentor__V1__ApiKey key;
    stentor__v1__api_key__init(&key);
    sha256(str_from(text), hash);
    key.key_id = arena_cstr(s->arena, str_from(id));
    key.scopes = scopes;
    key.n_scopes = scope != NULL ? 1 : 0;
    key.tenant = arena_cstr(s->arena, str_from(tenant));
    key.secret_hash = pb_data(str_of(hash, sizeof hash));
    Str packed = STR_EMPTY;
    assert_true(event_pack(&key.base, s->arena, &packed, NULL));
    assert_true(auth_changed(s->auth, str_from(tenant), str_from(id), packed, NULL));
}

static int set_up(void **state)
{
    Scene *s = xcalloc(1, sizeof *s);
    Error err = {0};
    uv_loop_init(&s->loop);
    s->arena = arena_new(0);
    buf_init(&s->answer, 65536);
    s->registry = metrics_new();
    api_metrics_init(&s->metrics, s->registry, "stentor_ingest_refused_total");
    s->auth = auth_new();
    s->catalog = catalog_new();
    add_key(s, "acme", "k1", KEY, NULL);
    add_key(s, "acme", "k2", READER, "read");
    add_key(s, "other", "k3", STRANGER, NULL);
    add_key(s, "acme", "k1", KEY, NULL);
    add_key(s, "acme", "k2", READER, "read");
    add_key(s, "platform", "k5", OPERATOR, "operator");
    add_key(s, "platform", "k6", PLATFORM, "admin");
    s->api = (Api){
        .auth = s->auth,
        .catalog = s->catalog,
        .metrics = &s->metrics,
        .unready = unready,
        .unready_ctx = s,
    };
    api_add(&s->api, FIRST, 3, NULL);
    api_add(&s->api, SECOND, sizeof SECOND / sizeof SECOND[0], NULL);
    api_add_open(&s->api, OPEN, sizeof OPEN / sizeof OPEN[0], NULL);
    api_add(&s->api, THIRD, sizeof THIRD / sizeof THIRD[0], NULL);
    api_add_others(&s->api, OTHERS, sizeof OTHERS / sizeof OTHERS[0]);
    s->server = http_server_new(
        &s->loop,
        &(HttpServerOptions){
            .bind = "127.0.0.1",
            .body_max = 1000,
            .admit = api_admit,
            .handler = api_handle,
            .ctx = &s->api},
        &err);
    assert_non_null(s->server);
    *state = s;
    return 0;
}

static void on_server_freed(void *ctx)
{
    ((Scene *)ctx)->freed = true;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    http_server_free(s->server, on_server_freed, s);
    while (!s->freed) {
        uv_run(&s->loop, UV_RUN_ONCE);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    catalog_free(s->catalog);
    auth_free(s->auth);
    metrics_free(s->registry);
    buf_done(&s->answer);
    arena_free(s->arena);
    free(s);
    return 0;
}

// Everything that is answered until the end; the connection is closed after it.
static const char *converse(Scene *s, const char *text)
{
    struct sockaddr_in place = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_server_port(s->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&place, sizeof place), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    buf_clear(&s->answer);
    int64_t until_us = clock_mono_us() + PATIENCE_US;
    ssize_t got = -1;
    while (got != 0 && clock_mono_us() < until_us) {
        char chunk[4096];
        uv_run(&s->loop, UV_RUN_NOWAIT);
        got = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (got > 0) {
            buf_append(&s->answer, chunk, (size_t)got);
        }
    }
    close(fd);
    return buf_c(&s->answer);
}

// The whole answer, head and body.
static const char *ask(Scene *s, const char *method, const char *path, const char *key)
{
    return converse(
        s,
        arena_printf(
            s->arena,
            "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n%s%s\r\n\r\n",
            method, path,
            key != NULL ? "Authorization: Bearer " : "X-None: ", key != NULL ? key : "1"));
}

static void assert_answer(
    Scene *s, const char *method, const char *path, const char *status, const char *part)
{
    const char *answer = ask(s, method, path, KEY);
    if (strstr(answer, status) == NULL || strstr(answer, part) == NULL) {
        fail_msg("%s %s: wanted '%s' and '%s', got:\n%s", method, path, status, part, answer);
    }
}

static void a_key_of_other_addresses_is_refused_and_the_answer_names_from_where_it_was(void **state)
{
    Scene *s = *state;
    static char elsewhere[] = "10.0.0.0/8", here[] = "127.0.0.0/8";
    uint8_t hash[SHA256_LEN];
    Stentor__V1__ApiKey key;
    for (size_t i = 0; i < 2; i++) {
        Str packed = STR_EMPTY;
        char *from[] = {i == 0 ? elsewhere : here};
        stentor__v1__api_key__init(&key);
        sha256(STR("stn_k7.secret"), hash);
        key.key_id = arena_cstr(s->arena, STR("k7"));
        key.tenant = arena_cstr(s->arena, STR("acme"));
        key.secret_hash = pb_data(str_of(hash, sizeof hash));
        key.allowed_cidrs = from;
        key.n_allowed_cidrs = 1;
        assert_true(event_pack(&key.base, s->arena, &packed, NULL));
        assert_true(auth_changed(s->auth, STR("acme"), STR("k7"), packed, NULL));
        const char *answer = ask(s, "GET", "/v1/things/7", "stn_k7.secret");
        assert_non_null(strstr(answer, i == 0 ? " 403 " : " 200 "));
        if (i == 0) {
            assert_non_null(strstr(answer, "address-not-allowed"));
            assert_non_null(strstr(answer, "127.0.0.1"));
        }
    }
    // Without the secret nothing is learnt of it.
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7", "stn_k7.other"), " 401 "));
}

static void a_route_is_found_by_method_and_path_with_its_segments(void **state)
{
    Scene *s = *state;
    assert_answer(s, "GET", "/v1/things/a%20b", " 200 ", "get|acme|k1|a b|");
    assert_answer(s, "PUT", "/v1/things/7", " 200 ", "put|acme|k1|7|");
    assert_answer(s, "GET", "/v1/things/7/parts/8?x=9", " 200 ", "part|acme|k1|7|8");
    assert_answer(s, "POST", "/v1/things/fixed", " 200 ", "fixed|acme|k1||");
}

static void what_leads_nowhere_is_404_and_another_method_405_with_those_that_there_are(void **state)
{
    Scene *s = *state;
    static const char *const NOWHERE[] = {
        "/",
        "/v1/things",
        "/v1/things/",
        "/v1/things/7/",
        "/v1/things/7/parts",
        "/v1/things//parts/8",
        "/v1/things/7/parts/8/9",
        "/v2/things/7"};
    for (size_t i = 0; i < sizeof NOWHERE / sizeof NOWHERE[0]; i++) {
        assert_answer(s, "GET", NOWHERE[i], " 404 ", "application/problem+json");
    }
    assert_answer(s, "DELETE", "/v1/things/7", " 405 ", "Allow: GET, HEAD, PUT");
    // Both patterns fit the path; each tells its method.
    assert_answer(s, "DELETE", "/v1/things/fixed", " 405 ", "Allow: GET, HEAD, PUT, POST");
}

static void head_is_answered_as_get_without_the_body(void **state)
{
    Scene *s = *state;
    const char *body = "get|acme|k1|7|";
    const char *answer = ask(s, "HEAD", "/v1/things/7", KEY);
    char *length = arena_printf(s->arena, "Content-Length: %zu\r\n", strlen(body));
    assert_non_null(strstr(answer, " 200 "));
    assert_non_null(strstr(answer, length));
    assert_null(strstr(answer, body));
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    assert_non_null(strstr(ask(s, "HEAD", "/v1/things", KEY), " 404 "));
    assert_answer(s, "HEAD", "/v1/sent", " 405 ", "Allow: POST");
}

static void nothing_is_served_without_a_key_or_while_it_is_not_ready(void **state)
{
    Scene *s = *state;
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7", NULL), " 401 "));
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7", "stn_k1.wrong"), " 401 "));
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7", "stn_k1.wrong"), "WWW-Authenticate"));
    s->unready = "reading";
    assert_answer(s, "GET", "/v1/things/7", " 503 ", "Retry-After: 2");
    assert_answer(s, "GET", "/v1/nothing", " 404 ", "problem");
}

static void an_open_route_asks_for_no_key_and_takes_no_unknown_parameter_either(void **state)
{
    Scene *s = *state;
    assert_non_null(strstr(ask(s, "GET", "/v1/document", NULL), " 200 "));
    assert_non_null(strstr(ask(s, "GET", "/v1/document", "stn_k1.wrong"), " 200 "));
    assert_non_null(strstr(ask(s, "GET", "/v1/document?x=1", NULL), " 400 "));
    assert_non_null(strstr(ask(s, "PUT", "/v1/entries/7", NULL), " 401 "));
}

static void the_routes_are_listed_with_scope_parameters_and_preconditions(void **state)
{
    Scene *s = *state;
    Buf out;
    buf_init(&out, 8192);
    api_print_routes(&s->api, &out);
    const char *text = buf_c(&out);
    assert_non_null(strstr(text, "GET\t/v1/things/{}/parts/{}\ttriggers:read\t-\tx z\n"));
    assert_non_null(strstr(text, "GET\t/v1/document\tnone\t-\t\n"));
    assert_non_null(strstr(text, "PUT\t/v1/entries/{}\ttenants:operate\tconditional\tb a\n"));
    assert_non_null(
        strstr(text, "GET\t/v1/pages/{}\tnone\t-\t\nGET\t/v1/inbox\tinbox\t-\tlimit\n"));
    buf_done(&out);
}

static void a_suspended_tenant_gets_no_further(void **state)
{
    Scene *s = *state;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(s->arena, STR("acme"));
    tenant.suspended = true;
    Str packed = STR_EMPTY;
    assert_true(event_pack(&tenant.base, s->arena, &packed, NULL));
    assert_true(catalog_tenant_changed(s->catalog, STR("acme"), packed, NULL));
    assert_answer(s, "GET", "/v1/things/7", " 403 ", "tenant-suspended");
}

// A call for a tenant, and a part of its answer.
static void assert_speaks(
    Scene *s, const char *call, const char *key, const char *tenant, const char *part)
{
    const char *answer = converse(
        s, arena_printf(
               s->arena,
               "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n"
               "Authorization: Bearer %s\r\nStentor-Tenant: %s\r\n\r\n",
               call, key, tenant));
    if (strstr(answer, part) == NULL) {
        fail_msg("%s for '%s': wanted '%s', got:\n%s", call, tenant, part, answer);
    }
}

static void an_operator_speaks_for_any_tenant_and_every_other_key_for_its_own(void **state)
{
    Scene *s = *state;
    assert_speaks(s, "GET /v1/things/7", OPERATOR, "acme", "get|acme|k5|");
    assert_speaks(s, "GET /v1/things/7", OPERATOR, "not-there", "get|not-there|k5|");
    assert_speaks(s, "GET /v1/things/7", OPERATOR, "", "get|platform|k5|");
    assert_speaks(s, "GET /v1/things/7", KEY, "acme", "get|acme|k1|");
    static const char *const strangers[][2] = {
        {KEY, "other"}, {KEY, "platform"}, {READER, "other"}, {PLATFORM, "acme"}};
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_speaks(
            s, "GET /v1/things/7", strangers[i][0], strangers[i][1],
            "urn:stentor:problem:foreign-tenant");
    }
    static const char *const no_tenants[] = {"Acme", "a.b", "*", "a/b", "-a", "acme,other"};
    for (size_t i = 0; i < sizeof no_tenants / sizeof no_tenants[0]; i++) {
        assert_speaks(
            s, "GET /v1/things/7", OPERATOR, no_tenants[i], "\"field\":\"Stentor-Tenant\"");
    }
}

static void for_a_tenant_that_is_not_known_nothing_is_sent(void **state)
{
    Scene *s = *state;
    assert_speaks(s, "POST /v1/sent", OPERATOR, "other", "urn:stentor:problem:tenant-unknown");
    assert_speaks(s, "POST /v1/sent", OPERATOR, "other", "stentor tenant put other");
    assert_speaks(
        s, "GET /v1/things/7", OPERATOR, "other", "get|other|k5|"); // what it needs may be put
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(s->arena, STR("other"));
    Str packed = STR_EMPTY;
    assert_true(event_pack(&tenant.base, s->arena, &packed, NULL));
    assert_true(catalog_tenant_changed(s->catalog, STR("other"), packed, NULL));
    assert_speaks(s, "POST /v1/sent", OPERATOR, "other", "fixed|other|k5|");
    tenant.suspended = true;
    tenant.status = STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
    assert_true(event_pack(&tenant.base, s->arena, &packed, NULL));
    assert_true(catalog_tenant_changed(s->catalog, STR("other"), packed, NULL));
    assert_speaks(s, "POST /v1/sent", OPERATOR, "other", "urn:stentor:problem:tenant-deleting");
}

static void an_operator_reaches_a_suspended_tenant_and_sends_nothing_for_it(void **state)
{
    Scene *s = *state;
    Stentor__V1__Tenant tenant;
    stentor__v1__tenant__init(&tenant);
    tenant.tenant = arena_cstr(s->arena, STR("acme"));
    tenant.suspended = true;
    Str packed = STR_EMPTY;
    assert_true(event_pack(&tenant.base, s->arena, &packed, NULL));
    assert_true(catalog_tenant_changed(s->catalog, STR("acme"), packed, NULL));
    assert_speaks(s, "GET /v1/things/7", OPERATOR, "acme", "get|acme|k5|");
    assert_speaks(s, "POST /v1/sent", OPERATOR, "acme", "tenant-suspended");
    assert_speaks(s, "GET /v1/things/7", KEY, "acme", "tenant-suspended");
}

static void finding_11_a_key_gets_no_further_than_its_scopes(void **state)
{
    Scene *s = *state;
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7", READER), " 200 "));
    const char *answer = ask(s, "PUT", "/v1/things/7", READER);
    assert_non_null(strstr(answer, " 403 "));
    assert_non_null(strstr(answer, "urn:stentor:problem:missing-scope"));
    assert_non_null(strstr(answer, "'triggers:write'"));
    assert_non_null(strstr(ask(s, "PUT", "/v1/things/7", KEY), " 200 "));
}

static void finding_16_a_failure_is_503_or_500_and_quotes_no_inner_words(void **state)
{
    Scene *s = *state;
    assert_answer(s, "GET", "/v1/failing/transient", " 503 ", "\"urn:stentor:fault:flt_");
    assert_null(strstr(buf_c(&s->answer), "the inner reason"));
    assert_answer(s, "GET", "/v1/failing/fault", " 500 ", "\"urn:stentor:fault:flt_");
    assert_null(strstr(buf_c(&s->answer), "the inner reason"));
    assert_answer(s, "GET", "/v1/missing", " 404 ", "no thing 'x'");
}

static void a_query_parameter_is_one_that_the_route_takes_and_given_once(void **state)
{
    Scene *s = *state;
    assert_answer(s, "GET", "/v1/things/7/parts/8?x=", " 200 ", "part|");
    assert_answer(s, "GET", "/v1/things/7/parts/8?y=1", " 400 ", "\"field\":\"y\"");
    assert_answer(s, "GET", "/v1/things/7/parts/8?y=1", " 400 ", "this route takes x, z\"");
    assert_answer(s, "GET", "/v1/things/7/parts/8?X=1", " 400 ", "\"field\":\"X\"");
    assert_answer(s, "GET", "/v1/things/7/parts/8?=1", " 400 ", "\"field\":\"\"");
    assert_answer(s, "GET", "/v1/things/7/parts/8?x=1&z=2&x=1", " 400 ", "\"field\":\"x\"");
    assert_answer(s, "GET", "/v1/things/7?x=1", " 400 ", "takes no query parameters");
    assert_answer(s, "GET", "/v1/things/7?=1", " 400 ", "takes no query parameters");
    // Who shows no key learns nothing of the parameters.
    assert_non_null(strstr(ask(s, "GET", "/v1/things/7?x=1", NULL), " 401 "));
}

static const char *request_id(const char *answer)
{
    const char *at = strstr(answer, "Stentor-Request-Id: req_");
    return at != NULL ? at + strlen("Stentor-Request-Id: ") : NULL;
}

static void every_answer_has_its_request_s_id_and_every_problem_names_it(void **state)
{
    Scene *s = *state;
    static const struct {
        const char *method, *path, *key, *status;
    } rows[] = {
        {"GET", "/v1/things/7", KEY, " 200 "},    {"GET", "/v1/nothing", KEY, " 404 "},
        {"DELETE", "/v1/things/7", KEY, " 405 "}, {"GET", "/v1/things/7", NULL, " 401 "},
        {"PUT", "/v1/things/7", READER, " 403 "}, {"GET", "/v1/things/7?x=1", KEY, " 400 "},
        {"GET", "/v1/things/%FE", KEY, " 400 "},  {"GET", "nothing", KEY, " 400 "},
        {"GET", "/v1/failing/x", KEY, " 500 "},
    };
    char seen[sizeof rows / sizeof rows[0]][ID_SIZE] = {{0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *answer = ask(s, rows[i].method, rows[i].path, rows[i].key);
        const char *id = request_id(answer);
        if (strstr(answer, rows[i].status) == NULL || id == NULL) {
            fail_msg("row %zu: %s", i, answer);
            return;
        }
        memcpy(seen[i], id, ID_SIZE - 1);
        seen[i][4 + ULID_LEN] = '\0';
        assert_true(id_parse(str_from(seen[i]), "req_", NULL));
        const char *named =
            arena_printf(s->arena, "\"instance\":\"urn:stentor:request:%s\"", seen[i]);
        const char *fault = strstr(answer, "\"instance\":\"urn:stentor:fault:");
        bool problem = strstr(answer, "problem+json") != NULL;
        assert_true(!problem || fault != NULL || strstr(answer, named) != NULL);
        for (size_t n = 0; n < i; n++) {
            assert_string_not_equal(seen[i], seen[n]);
        }
    }
}

static const char *next_of(Scene *s, const char *answer)
{
    const char *at = strstr(answer, "\"next\":\"");
    assert_non_null(at);
    at += strlen("\"next\":\"");
    return arena_cstr(s->arena, str_of(at, strcspn(at, "\"")));
}

static void a_list_comes_in_pages_and_its_cursor_leads_to_no_other_list(void **state)
{
    Scene *s = *state;
    const char *next = next_of(s, ask(s, "GET", "/v1/numbers?kind=a", KEY));
    assert_non_null(strstr(buf_c(&s->answer), "{\"data\":[1,2],\"next\":\""));
    assert_answer(
        s, "GET", arena_printf(s->arena, "/v1/numbers?kind=a&cursor=%s&limit=3", next), " 200 ",
        "{\"data\":[3,4,5],\"next\":null}");
    assert_answer(
        s, "GET", arena_printf(s->arena, "/v1/numbers?limit=3&cursor=%s&kind=a", next), " 200 ",
        "{\"data\":[3,4,5],\"next\":null}");
    static const char *const others[] = {
        "/v1/numbers?", "/v1/numbers?kind=b&", "/v1/numbers?state=a&",
        "/v1/numbers?kind=a&state=a&", "/v1/x/numbers?kind=a&"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *path = arena_printf(s->arena, "%scursor=%s", others[i], next);
        assert_answer(s, "GET", path, " 400 ", "\"field\":\"cursor\"");
    }
    const char *cut = arena_cstr(s->arena, str_slice(str_from(next), 0, strlen(next) - 1));
    assert_answer(
        s, "GET", arena_printf(s->arena, "/v1/numbers?kind=a&cursor=%s", cut), " 400 ",
        "\"field\":\"cursor\"");
    // Of another tenant, whose key this is.
    const char *answer =
        ask(s, "GET", arena_printf(s->arena, "/v1/numbers?kind=a&cursor=%s", next), STRANGER);
    assert_non_null(strstr(answer, " 400 "));
    assert_answer(s, "GET", "/v1/numbers?limit=5", " 422 ", "from 1 to 4");
    assert_answer(s, "GET", "/v1/numbers?limit=0", " 422 ", "\"field\":\"limit\"");
}

// A thousand bytes are announced and none is sent: the answer is there all the same.
static void finding_07_route_key_scope_and_coding_are_asked_at_the_headers(void **state)
{
    Scene *s = *state;
    static const struct {
        const char *line, *headers, *status;
    } rows[] = {
        {"POST /v1/nowhere", "Authorization: Bearer " KEY, " 404 "},
        {"DELETE /v1/things/7", "Authorization: Bearer " KEY, " 405 "},
        {"PUT /v1/things/7", "X-None: 1", " 401 "},
        {"PUT /v1/things/7", "Authorization: Bearer stn_k1.wrong", " 401 "},
        {"PUT /v1/things/7", "Authorization: Bearer " READER, " 403 "},
        {"PUT /v1/things/7", "Content-Encoding: gzip\r\nAuthorization: Bearer " KEY, " 415 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *answer = converse(
            s, arena_printf(
                   s->arena, "%s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 1000\r\n\r\n",
                   rows[i].line, rows[i].headers));
        if (strstr(answer, rows[i].status) == NULL) {
            fail_msg("row %zu: %s", i, answer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_key_of_other_addresses_is_refused_and_the_answer_names_from_where_it_was, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_route_is_found_by_method_and_path_with_its_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_leads_nowhere_is_404_and_another_method_405_with_those_that_there_are, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            head_is_answered_as_get_without_the_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            nothing_is_served_without_a_key_or_while_it_is_not_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_suspended_tenant_gets_no_further, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_open_route_asks_for_no_key_and_takes_no_unknown_parameter_either, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_routes_are_listed_with_scope_parameters_and_preconditions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_operator_speaks_for_any_tenant_and_every_other_key_for_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_operator_reaches_a_suspended_tenant_and_sends_nothing_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            for_a_tenant_that_is_not_known_nothing_is_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            finding_11_a_key_gets_no_further_than_its_scopes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            finding_16_a_failure_is_503_or_500_and_quotes_no_inner_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_query_parameter_is_one_that_the_route_takes_and_given_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            every_answer_has_its_request_s_id_and_every_problem_names_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_list_comes_in_pages_and_its_cursor_leads_to_no_other_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            finding_07_route_key_scope_and_coding_are_asked_at_the_headers, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
