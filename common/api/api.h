// SPDX-License-Identifier: Apache-2.0
// The HTTP surface's core: which handler a method and a path lead to, and what must hold before it
// runs (the service is ready, the key is valid and may do this, the tenant is known and not
// suspended). The handlers stand in
// the files of their subject (notifications_api.c, ...), each with its table of routes. Law: every
// refusal is a problem document (RFC 9457); one that concerns a field names it. An operator's key
// (auth.h) acts for the tenant that the header Stentor-Tenant names; any other key only for its
// own, also with that header.
#pragma once

#include <jansson.h>

#include "common/api/api_metrics.h"
#include "common/api/auth.h"
#include "common/api/callers/api_audit.h"
#include "common/api/callers/key_usage.h"
#include "common/api/callers/session.h"
#include "common/api/faults.h"
#include "common/api/guards/allowance.h"
#include "common/api/page_cursor.h"
#include "common/http/server.h"
#include "common/request/catalog.h"
#include "common/request/request.h"

// The one route that any valid key may call, whatever its scopes: it shows them.
#define API_ANY_CALLER "/v1/me"

enum { API_PARAMS_MAX = 3, API_ROUTE_SETS_MAX = 64, API_ARGUMENTS_MAX = 16, API_OTHERS_MAX = 32 };

// One call; lives in http->arena, until it is answered.
typedef struct ApiCall {
    const struct ApiRoute *route;
    HttpRequest *http;
    void *ctx; // of the set of routes
    ApiMetrics *metrics;
    Faults *faults;
    const PageKeys *page_keys;
    char tenant[TENANT_SIZE]; // the key's; an operator's call: that of the header Stentor-Tenant
    Str key_id;               // of the API key that was shown
    const char *actor;        // who calls, as the audit log names it: "key <id>"
    bool person;              // a user of the console, not a key
    Str secret;               // of the person's session, until that is read
    const ApiPerson *session; // the person's; NULL: a key calls
    const struct Api *api;
    ScopeSet scopes;       // what it may
    bool operates;         // it is an operator's key
    int64_t expires_at_us; // when it ends; 0: never
    int64_t claimed_at_us; // when its Idempotency-Key was claimed first, which is the same in each
                           // repeat that is carried out again; 0: it has none
    Str params[API_PARAMS_MAX]; // what stands in the place of each {}
} ApiCall;

// Must lead to exactly one answer, now or later; runs on the loop.
typedef void (*ApiHandler)(ApiCall *call);

typedef struct ApiRoute {
    const char *method;
    const char *path; // "/v1/recipients/{}/preferences": {} is one segment, never empty
    Scope scope; // what the key must have; no route is without, but those of api_add_open() and
                 // API_ANY_CALLER
    ApiHandler handle;
    const char *query; // the query parameters that it takes, "limit cursor status"; NULL: none
    bool conditional;  // it reads If-Match and If-None-Match (precondition.h); other writes refuse
                       // them
} ApiRoute;

// A route that is answered elsewhere, before this core is asked; here only to be listed.
typedef struct ApiOther {
    const char *method;
    const char *path;
    const char *caller; // who may: "none" (anybody), "inbox" (who has a token)
    const char *query;
} ApiOther;

typedef struct ApiRoutes {
    const ApiRoute *routes;
    size_t count;
    void *ctx;
    bool open;
} ApiRoutes;

typedef struct Idempotency Idempotency; // idempotency.h

typedef struct Api {
    const Auth *auth;
    const Catalog *catalog;
    ApiMetrics *metrics;
    // NULL: requests are taken; else why not ("configuration is being read").
    const char *(*unready)(void *ctx);
    void *unready_ctx;
    KeyUsage *usage; // NULL: not kept
    ApiAudit audit;
    Sessions sessions; // pool NULL: only keys are taken
    PageKeys page_keys;
    Allowance *allowance;     // NULL: callers have no bound
    Idempotency *idempotency; // NULL: a POST's Idempotency-Key is its handler's business
    Faults faults;            // of all calls
    ApiRoutes sets[API_ROUTE_SETS_MAX];
    size_t set_count;
    const ApiOther *others[API_OTHERS_MAX];
    size_t other_count;
} Api;

void api_add(Api *api, const ApiRoute *routes, size_t count, void *ctx);
// Routes for anybody: no key is asked for, and none is looked at, so the call has no tenant.
void api_add_open(Api *api, const ApiRoute *routes, size_t count, void *ctx);
void api_add_others(Api *api, const ApiOther *others, size_t count); // a table that stays
// All of them, one a line, with tabs between: method, path, scope (or "none", "inbox"),
// "conditional" or "-", the query parameters. What `--routes` of a service prints.
void api_print_routes(const Api *api, Buf *out);
// An HttpAdmit: route, readiness, key, tenant, scope, the query's names and preconditions, at the
// headers. Of a session's cookie (session.h) only its form and the origin are asked there; who it
// is, and what they may, is asked of Postgres when the body is there. A parameter that the route
// does not take, or that is given twice, is 400; so is a precondition of a write that would pass
// over it. ctx is an Api.
bool api_admit(void *ctx, HttpRequest *request);
void api_handle(void *ctx, HttpRequest *request); // an HttpHandler; the same ctx
// What stands behind the audit log: the stored answer to an Idempotency-Key, or the handler.
void api_run(ApiCall *call);

// The last word of the route's path ("pause" of "/v1/batches/{}/pause"), for routes that share a
// handler.
Str api_route_word(const ApiCall *call);

// For what a route's own scope does not cover. false: answered, 403 with the scope's name.
bool api_need_scope(ApiCall *call, Scope scope);

// The refusals that all have in common. Each answers the call and counts it.
void api_answer_unavailable(ApiCall *call, const char *why); // 503 with Retry-After
void api_answer_problem(ApiCall *call, const Problem *problem);
void api_answer_field(ApiCall *call, const FieldError *err); // 422
// 422 too; false, for checks that return "false: answered".
bool api_refuse_field(ApiCall *call, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// 400: a query parameter, with the remedy.
void api_answer_parameter(ApiCall *call, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void api_answer_missing(ApiCall *call, const char *what); // 404: "recipient 'rcp_...'"
// 403: the tenant, which does not stand as STANDING_ACTIVE.
void api_answer_standing(ApiCall *call, TenantStanding standing);
// 503 for ERROR_TRANSIENT and CANCELLED, else 500. The error is logged, not shown: it may be a
// text of Postgres or NATS; the answer's instance is the id that the line in the log has.
void api_answer_failure(ApiCall *call, const Error *err);

void api_answer_json(ApiCall *call, int status, json_t *json); // takes it

// Who calls, in a sentence that a person reads: "API key <id>", "user <name>".
const char *api_caller_name(const ApiCall *call);
