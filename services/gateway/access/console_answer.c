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
                 : c == '"' ? STR("&quot;")
                            : str_slice(text, i, i + 1));
    }
}

static void begin_page(Buf *page, const char *title)
{
    buf_init(page, PAGE_MAX);
    buf_printf(
        page,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>"
        "<style>:root{color-scheme:light dark;background:light-dark(#fff,#12151a);"
        "color:light-dark(#16191f,#e7eaef)}a{color:light-dark(#1f5fc4,#8ab4ff)}"
        "body{font-family:sans-serif;max-width:32em;margin:3em auto;padding:0 1em;"
        "overflow-wrap:break-word}button{font:inherit;padding:.5em 1em}</style></head><body><main>"
        "<h1>%s</h1>",
        title, title);
}

// `form`: where its forms lead.
static void end_page(HttpRequest *http, int status, Buf *page, const char *form)
{
    buf_cstr(page, "<p><a href=\"/console/\">Back to the console</a></p></main></body></html>");
    const char *policy = arena_printf(
        http->arena,
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action %s; "
        "frame-ancestors 'none'",
        form);
    http_response_header(http, "Content-Security-Policy", str_from(policy));
    http_response_header(http, "X-Content-Type-Options", STR("nosniff"));
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_respond(http, status, "text/html; charset=utf-8", buf_view(page));
    buf_done(page);
}

static void answer_page(HttpRequest *http, int status, const char *detail)
{
    Buf page;
    begin_page(&page, "Not signed in");
    buf_cstr(&page, "<p>");
    put_escaped(&page, str_from(detail));
    buf_cstr(&page, ".</p>");
    http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    end_page(http, status, &page, "'none'");
}

static void put_strong(Buf *page, const char *before, Str text)
{
    buf_cstr(page, before);
    buf_cstr(page, "<strong>");
    put_escaped(page, text);
    buf_cstr(page, "</strong>");
}

void console_ask(HttpRequest *http, const ConsoleAsk *ask)
{
    Buf page;
    begin_page(&page, "Sign in?");
    put_strong(&page, "<p>This link signs you in as ", ask->user);
    put_strong(&page, ", role ", ask->role);
    put_strong(&page, ", tenant ", ask->tenants);
    buf_cstr(&page, ". Go on only if it was made for you.</p>");
    if (ask->present.len > 0) {
        put_strong(&page, "<p>You are signed in here as ", ask->present);
        buf_cstr(&page, ". That session ends.</p>");
    }
    // To the page's own address: so what stands behind its '#', a screen, is kept to the console.
    buf_cstr(&page, "<form method=\"post\"><input type=\"hidden\" name=\"token\" value=\"");
    put_escaped(&page, ask->token);
    buf_cstr(&page, "\"><p><button>Sign in</button></p></form>");
    // Under no-referrer the form's Origin would be null, and without HTTPS that is all there is.
    http_response_header(http, "Referrer-Policy", STR("same-origin"));
    end_page(http, 200, &page, "'self'");
}

void console_refuse(HttpRequest *http, int status, const char *slug, const char *detail)
{
    if (str_contains(http_header(http, "Accept"), STR("text/html"))) {
        answer_page(http, status, detail);
    } else {
        http_response_header(http, "Cache-Control", STR("no-store"));
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
