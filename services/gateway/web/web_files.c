// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/web/web_files.h"

#define DEMO "/inbox/demo"
#define DEMO_ASSETS "/inbox/assets/"
#define CONSOLE "/console/"

// Scripts, styles and frames of this origin; what is asked for too. A page is in no frame and sends
// no form.
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "  \
    "'self'; frame-src 'self'; "                                                                   \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
// A document within the frame has this policy too: styles of its own, images that it carries, and
// nothing else. Only a page of this origin frames it.
#define FRAME_POLICY                                                                               \
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "              \
    "form-action 'none'; frame-ancestors 'self'"

bool web_is_path(Str path)
{
    return str_starts(path, STR("/inbox/")) || str_starts(path, STR(CONSOLE)) ||
           str_eq(path, STR("/console"));
}

static bool is_demo(Str path)
{
    return str_starts(path, STR(DEMO)) || str_starts(path, STR(DEMO_ASSETS));
}

const WebFile *web_find(const WebFiles *files, Str path)
{
    path = str_eq(path, STR("/console")) ? STR(CONSOLE) : path;
    for (size_t i = 0; i < web_table_count; i++) {
        if (str_eq(path, str_from(web_table[i].path))) {
            return files->demo || !is_demo(path) ? &web_table[i] : NULL;
        }
    }
    return NULL;
}

// ---- which form ----

// "q=0", "q=0.000": it is not wanted.
static bool is_refused(Str weight)
{
    Str value = str_trim(weight);
    bool zero = str_starts(value, STR("q=0"));
    for (size_t i = 3; zero && i < value.len; i++) {
        zero = value.ptr[i] == '0' || value.ptr[i] == '.';
    }
    return zero;
}

static bool takes(Str accepted, Str coding)
{
    Str rest = accepted;
    Str item = STR_EMPTY;
    Str name = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, ',', &item)) {
        (void)str_split(&item, ';', &name);
        if (str_eq_nocase(str_trim(name), coding)) {
            return item.ptr == NULL || !is_refused(item);
        }
    }
    return false;
}

WebCoding web_choose(const WebFile *file, Str accepted)
{
    if (file->brotli.len > 0 && takes(accepted, STR("br"))) {
        return WEB_BROTLI;
    }
    return takes(accepted, STR("gzip")) ? WEB_GZIP : WEB_PLAIN;
}

static Str bytes_of(const WebFile *file, WebCoding coding)
{
    switch (coding) {
    case WEB_BROTLI:
        return file->brotli;
    case WEB_GZIP:
        return file->gzip;
    case WEB_PLAIN:
        break;
    }
    return file->plain;
}

// ---- answers ----

static const char *cache_of(WebKind kind)
{
    switch (kind) {
    case WEB_MODULE:
        return "public, max-age=300";
    case WEB_HASHED:
        return "public, max-age=31536000, immutable";
    case WEB_PAGE:
    case WEB_FRAME:
        break;
    }
    return "no-cache";
}

static void add_headers(HttpRequest *http, const WebFile *file, WebCoding coding, Str tag)
{
    bool module = file->kind == WEB_MODULE;
    http_response_header(http, "ETag", tag);
    http_response_header(http, "Vary", STR("Accept-Encoding"));
    http_response_header(http, "Cache-Control", str_from(cache_of(file->kind)));
    http_response_header(http, "X-Content-Type-Options", STR("nosniff"));
    http_response_header(
        http, "Cross-Origin-Resource-Policy", module ? STR("cross-origin") : STR("same-origin"));
    if (module) {
        http_response_header(http, "Access-Control-Allow-Origin", STR("*"));
    }
    if (file->kind == WEB_PAGE || file->kind == WEB_FRAME) {
        Str policy = file->kind == WEB_PAGE ? STR(PAGE_POLICY) : STR(FRAME_POLICY);
        http_response_header(http, "Content-Security-Policy", policy);
        http_response_header(http, "Referrer-Policy", STR("no-referrer"));
    }
    if (coding != WEB_PLAIN) {
        http_response_header(
            http, "Content-Encoding", coding == WEB_GZIP ? STR("gzip") : STR("br"));
    }
}

// Each form has a tag of its own. A list, of which any may be weak, or "*".
static bool has_it(const HttpRequest *http, Str tag)
{
    Str rest = http_header(http, "If-None-Match");
    Str item = STR_EMPTY;
    bool has = false;
    while (!has && rest.len > 0 && str_split(&rest, ',', &item)) {
        item = str_trim(item);
        item = str_starts(item, STR("W/")) ? str_slice(item, 2, item.len) : item;
        has = str_eq(item, tag) || str_eq(item, STR("*"));
    }
    return has;
}

static void answer(HttpRequest *http, const WebFile *file)
{
    static const char *const endings[] = {
        [WEB_PLAIN] = "", [WEB_GZIP] = "-gzip", [WEB_BROTLI] = "-br"};
    WebCoding coding = web_choose(file, http_header(http, "Accept-Encoding"));
    Str tag = str_from(arena_printf(http->arena, "\"%s%s\"", file->hash, endings[coding]));
    add_headers(http, file, coding, tag);
    if (has_it(http, tag)) {
        http_respond(http, 304, NULL, STR_EMPTY);
    } else {
        http_respond_kept(http, 200, file->type, bytes_of(file, coding));
    }
}

bool web_files_admit(HttpRequest *http)
{
    bool reads = str_eq(http->method, STR("GET")) || str_eq(http->method, STR("HEAD"));
    http->body_max = 0;
    if (!reads) {
        http_response_header(http, "Allow", STR("GET, HEAD"));
        http_problem(
            http, 405, "method-not-allowed", "Method not allowed", NULL, "use GET or HEAD");
    }
    return reads;
}

void web_files_handle(const WebFiles *files, HttpRequest *http)
{
    const WebFile *file = web_find(files, http->path);
    if (file != NULL) {
        answer(http, file);
    } else if (is_demo(http->path)) {
        http_problem(
            http, 404, "not-found", "Not found", NULL,
            "the demo page is shown where STENTOR_GATEWAY_INBOX_DEMO is on and the gateway was "
            "built with Node.js");
    } else if (str_eq(http->path, STR(CONSOLE))) {
        http_problem(
            http, 404, "not-found", "Not found", NULL,
            "this gateway was built without Node.js and has no console; its API has all that the "
            "console shows");
    } else {
        http_problem(
            http, 404, "not-found", "Not found", NULL,
            "there is no such file; the web component is /inbox/stentor-inbox.js");
    }
}
