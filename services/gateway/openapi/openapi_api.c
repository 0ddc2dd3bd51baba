// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/openapi/openapi_api.h"

#include <string.h>

#include "services/gateway/openapi/document.h"

enum { PROBLEMS_MAX = 128 * 1024 };

// If-None-Match: a list of tags, of which one may be weak, or "*".
static bool has_it(const HttpRequest *http)
{
    Str rest = http_header(http, "If-None-Match");
    Str tag = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, ',', &tag)) {
        tag = str_trim(tag);
        tag = str_starts(tag, STR("W/")) ? str_slice(tag, 2, tag.len) : tag;
        if (str_eq(tag, str_from(openapi_document_tag)) || str_eq(tag, STR("*"))) {
            return true;
        }
    }
    return false;
}

static void get_document(ApiCall *call)
{
    HttpRequest *http = call->http;
    http_response_header(http, "ETag", str_from(openapi_document_tag));
    http_response_header(http, "Cache-Control", STR("no-cache"));
    http_response_header(http, "Access-Control-Allow-Origin", STR("*"));
    if (has_it(http)) {
        http_respond(http, 304, NULL, STR_EMPTY);
        return;
    }
    Str text = str_of((const char *)openapi_document, openapi_document_len);
    http_respond_kept(http, 200, "application/openapi+json", text);
}

static void list_problems(ApiCall *call)
{
    Buf out;
    buf_init(&out, PROBLEMS_MAX);
    buf_cstr(&out, "{\"data\":[");
    for (size_t i = 0; i < openapi_problem_count; i++) {
        buf_cstr(&out, i > 0 ? "," : "");
        buf_cstr(&out, openapi_problems[i].json);
    }
    buf_cstr(&out, "],\"next\":null}");
    http_respond(call->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

// By the last part of its type, or by the whole of it.
static void get_problem(ApiCall *call)
{
    static const Str urn = {"urn:stentor:problem:", 20};
    Str name = call->params[0];
    name = str_starts(name, urn) ? str_slice(name, urn.len, name.len) : name;
    for (size_t i = 0; i < openapi_problem_count; i++) {
        const OpenapiProblem *problem = &openapi_problems[i];
        if (str_eq(name, str_from(problem->name))) {
            const char *accepts = arena_cstr(call->http->arena, http_header(call->http, "Accept"));
            bool page = strstr(accepts, "text/html") != NULL;
            http_respond(
                call->http, 200, page ? "text/html; charset=utf-8" : "application/json",
                str_from(page ? problem->html : problem->json));
            return;
        }
    }
    api_answer_missing(call, "such problem; GET /v1/problems lists all of them");
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/openapi.json", SCOPE_NONE, get_document, NULL, false},
    {"GET", "/v1/problems", SCOPE_NONE, list_problems, NULL, false},
    {"GET", "/v1/problems/{}", SCOPE_NONE, get_problem, NULL, false},
};

// clang-format off
static const ApiOther OTHERS[] = {
    {"GET",  "/v1/assets/{}/{}",     "none",  NULL}, // assets/assets_public.h
    {"GET",  "/v1/preferences/{}",   "none",  NULL}, // preferences/preferences_public.h
    {"POST", "/v1/preferences/{}",   "none",  NULL},
    {"GET",  "/v1/inbox",            "inbox", "limit before tab category"}, // inbox/inbox_public.h
    {"GET",  "/v1/inbox/counts",     "inbox", NULL},
    {"GET",  "/v1/inbox/preferences", "inbox", NULL},
    {"PUT",  "/v1/inbox/preferences", "inbox", NULL},
    {"GET",  "/v1/inbox/stream",     "inbox", NULL},
    {"POST", "/v1/inbox/seen-all",   "inbox", NULL},
    {"POST", "/v1/inbox/read-all",   "inbox", NULL},
    {"POST", "/v1/inbox/archive-all","inbox", NULL},
    {"POST", "/v1/inbox/{}/{}",      "inbox", NULL},
    {"POST", "/v1/inbox/{}/snooze",  "inbox", NULL},
};
// clang-format on

void openapi_api_add(Api *api)
{
    api_add_open(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], NULL);
    api_add_others(api, OTHERS, sizeof OTHERS / sizeof OTHERS[0]);
}
