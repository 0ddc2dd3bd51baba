// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/http/internal.h"

enum { DETAIL_MAX = 1024, ERROR_TEXT_MAX = 256 };

static void write_errors(Buf *json, const HttpError *errors, size_t count)
{
    buf_cstr(json, ",\"errors\":[");
    for (size_t i = 0; i < count && i < HTTP_ERRORS_MAX; i++) {
        buf_cstr(json, i > 0 ? ",{\"field\":" : "{\"field\":");
        buf_json(json, str_slice(str_from(errors[i].field), 0, ERROR_TEXT_MAX));
        buf_cstr(json, ",\"detail\":");
        buf_json(json, str_slice(str_from(errors[i].detail), 0, ERROR_TEXT_MAX));
        buf_char(json, '}');
    }
    buf_char(json, ']');
}

void problem_write(Buf *json, const HttpProblem *problem)
{
    const HttpError only = {problem->field, problem->detail};
    buf_printf(json, "{\"type\":\"urn:stentor:problem:%s\",\"title\":", problem->slug);
    buf_json(json, str_from(problem->title));
    buf_printf(json, ",\"status\":%d,\"detail\":", problem->status);
    buf_json(json, str_from(problem->detail));
    if (problem->field != NULL) {
        buf_cstr(json, ",\"field\":");
        buf_json(json, str_slice(str_from(problem->field), 0, DETAIL_MAX));
    }
    if (problem->error_count > 0) {
        write_errors(json, problem->errors, problem->error_count);
    } else if (problem->field != NULL) {
        write_errors(json, &only, 1);
    }
    if (problem->violated_policy != NULL) {
        buf_printf(json, ",\"violated-policies\":[\"%s\"]", problem->violated_policy);
    }
    if (problem->trace_id.len > 0) {
        buf_cstr(json, ",\"trace_id\":");
        buf_json(json, problem->trace_id);
    }
    if (problem->instance != NULL) {
        buf_cstr(json, ",\"instance\":");
        buf_json(json, str_slice(str_from(problem->instance), 0, DETAIL_MAX));
    } else {
        buf_printf(json, ",\"instance\":\"urn:stentor:request:%s\"", problem->request_id);
    }
    buf_char(json, '}');
    assert(!json->full);
}

// Of a W3C traceparent, version 00: "00-", 32 digits, "-", 16 digits, "-", 2 digits. Empty: the
// caller sent none that is one.
static Str trace_id_of(const HttpRequest *request)
{
    enum { LENGTH = 55, FIRST = 3, END = 35 };
    Str text = http_header(request, "traceparent");
    if (text.len != LENGTH || !str_starts(text, STR("00-")) || text.ptr[END] != '-') {
        return STR_EMPTY;
    }
    for (size_t i = FIRST; i < END; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return STR_EMPTY;
        }
    }
    return str_slice(text, FIRST, END);
}

void http_problem(
    HttpRequest *request, int status, const char *slug, const char *title, const char *field,
    const char *format, ...)
{
    char detail[DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    Buf json;
    buf_init(&json, HTTP_PROBLEM_MAX);
    const HttpProblem problem = {
        .status = status,
        .slug = slug,
        .title = title,
        .detail = detail,
        .field = field,
        .instance = request->instance,
        .request_id = request->id,
        .trace_id = trace_id_of(request),
        .violated_policy = request->violated_policy,
        .errors = request->errors,
        .error_count = request->error_count,
    };
    problem_write(&json, &problem);
    http_respond(request, status, "application/problem+json", buf_view(&json));
    buf_done(&json);
}
