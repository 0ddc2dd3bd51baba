// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/access/console_answer.h"

#include "common/base/log.h"

enum { PAGE_MAX = 8192 };

static void put_escaped(Buf *out, Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        buf_str(
            out, c == '<'   ? STR("&lt;")
                 : c == '>' ? STR("&gt;")
                 : c == '&' ? STR("&amp;")
                            : str_slice(text, i, i + 1));
    }
}

static void answer_page(HttpRequest *http, int status, const char *detail)
{
    Buf page;
    buf_init(&page, PAGE_MAX);
    buf_cstr(
        &page, "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width\"><title>Not signed in</title>"
               "</head><body style=\"font-family:sans-serif;max-width:32em;margin:3em auto;"
               "padding:0 1em\"><h1>Not signed in</h1><p>");
    put_escaped(&page, str_from(detail));
    buf_cstr(&page, ".</p><p><a href=\"/console/\">Back to the console</a></p></body></html>");
    http_response_header(
        http, "Content-Security-Policy",
        STR("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"));
    http_response_header(http, "X-Content-Type-Options", STR("nosniff"));
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    http_respond(http, status, "text/html; charset=utf-8", buf_view(&page));
    buf_done(&page);
}

void console_refuse(HttpRequest *http, int status, const char *slug, const char *detail)
{
    http_response_header(http, "Cache-Control", STR("no-store"));
    if (str_contains(http_header(http, "Accept"), STR("text/html"))) {
        answer_page(http, status, detail);
    } else {
        http_problem(http, status, slug, "No session", NULL, "%s", detail);
    }
}

void console_fail(HttpRequest *http, const Error *err)
{
    LOG(LOG_WARN, "signing in or out at the console failed", log_text("request", http->id),
        log_error(err));
    http_response_header(http, "Retry-After", STR("2"));
    console_refuse(http, 503, "unavailable", "a server that this needs does not answer; try again");
}

void console_cookie(
    const Sessions *sessions, HttpRequest *http, const char *name, const char *value, int seconds)
{
    bool gone = value[0] == '\0';
    const char *age =
        gone || seconds > 0 ? arena_printf(http->arena, "; Max-Age=%d", gone ? 0 : seconds) : "";
    const char *cookie = arena_printf(
        http->arena, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s%s", name, value,
        sessions_are_secure(sessions) ? "; Secure" : "", age);
    http_response_header(http, "Set-Cookie", str_from(cookie));
}

void console_go_to(HttpRequest *http, const char *place)
{
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_response_header(http, "Location", str_from(place));
    http_respond(http, 303, NULL, STR_EMPTY);
}
