// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_origins.h"

// ---- the list ----

static bool is_host(Str host)
{
    bool good = host.len > 0;
    for (size_t i = 0; good && i < host.len; i++) {
        char c = host.ptr[i];
        good = (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '.' || c == '-';
    }
    return good;
}

// "[::1]"
static bool is_bracketed(Str host)
{
    bool good = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    for (size_t i = 1; good && i < host.len - 1; i++) {
        char c = host.ptr[i];
        good = (c >= 'a' && c <= 'f') || ascii_is_digit(c) || c == ':' || c == '.';
    }
    return good;
}

// A browser never names the port that its scheme has anyway.
static bool is_port(Str port, bool tls)
{
    int64_t number = 0;
    return port.len > 0 && port.ptr[0] != '0' && str_to_i64(port, &number) && number > 0 &&
           number <= 65535 && number != (tls ? 443 : 80);
}

static bool is_origin(Str text)
{
    bool tls = str_starts(text, STR("https://"));
    if ((!tls && !str_starts(text, STR("http://"))) || text.len > INBOX_ORIGIN_BYTES_MAX) {
        return false;
    }
    Str host = str_slice(text, tls ? 8 : 7, text.len);
    size_t end = host.len;
    while (end > 0 && ascii_is_digit(host.ptr[end - 1])) {
        end--;
    }
    if (end > 0 && host.ptr[end - 1] == ':' && !is_bracketed(host)) {
        if (!is_port(str_slice(host, end, host.len), tls)) {
            return false;
        }
        host = str_slice(host, 0, end - 1);
    }
    return is_host(host) || is_bracketed(host);
}

static bool add(InboxOrigins *origins, Str item, Error *err)
{
    if (str_eq(item, STR("*"))) {
        origins->any = true;
        return true;
    }
    if (!is_origin(item)) {
        return error_set(
            err, ERROR_CONFIG,
            "'" STR_FMT "' is no origin: 'https://app.example' or 'http://localhost:3000', in "
            "small letters, without a path and without the scheme's own port",
            STR_ARG(str_slice(item, 0, 80)));
    }
    if (origins->count == INBOX_ORIGINS_MAX) {
        return error_set(err, ERROR_CONFIG, "at most %d origins", INBOX_ORIGINS_MAX);
    }
    origins->list[origins->count++] = item;
    return true;
}

bool inbox_origins_parse(Str text, InboxOrigins *ret, Error *err)
{
    Str item;
    *ret = (InboxOrigins){.count = 0};
    while (text.len > 0) {
        ptrdiff_t end = str_find(text, ',');
        item = str_trim(end < 0 ? text : str_slice(text, 0, (size_t)end));
        text = end < 0 ? STR_EMPTY : str_slice(text, (size_t)end + 1, text.len);
        if (item.len > 0 && !add(ret, item, err)) {
            return false;
        }
    }
    return true;
}

bool inbox_origins_has(const InboxOrigins *origins, Str origin)
{
    bool found = origins->any && origin.len > 0;
    for (size_t i = 0; !found && i < origins->count; i++) {
        found = str_eq(origin, origins->list[i]);
    }
    return found;
}

// ---- calls ----

static void answer_preflight(HttpRequest *http, bool allowed)
{
    if (!allowed) {
        http_problem(
            http, 403, "origin-not-allowed", "Pages of this origin may not call", "Origin",
            "the operator names the origins of pages that may call /v1/inbox in "
            "STENTOR_GATEWAY_INBOX_ORIGINS");
        return;
    }
    http_response_header(http, "Access-Control-Allow-Methods", STR("GET, POST, PUT"));
    http_response_header(
        http, "Access-Control-Allow-Headers", STR("Authorization, Content-Type, Last-Event-ID"));
    http_response_header(http, "Access-Control-Max-Age", STR("600"));
    http_respond(http, 204, NULL, STR_EMPTY);
}

bool inbox_origins_admit(const InboxOrigins *origins, HttpRequest *http)
{
    Str origin = http_header(http, "Origin");
    bool allowed = inbox_origins_has(origins, origin);
    bool asks = str_eq(http->method, STR("OPTIONS")) && origin.len > 0 &&
                http_header(http, "Access-Control-Request-Method").len > 0;
    if (!origins->any) {
        http_response_header(http, "Vary", STR("Origin"));
    }
    if (allowed) {
        http_response_header(http, "Access-Control-Allow-Origin", origins->any ? STR("*") : origin);
        http_response_header(
            http, "Access-Control-Expose-Headers", STR("Retry-After, Stentor-Request-Id"));
    }
    if (asks) {
        http->body_max = 0;
        answer_preflight(http, allowed);
    }
    return !asks;
}
