// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/sns_link.h"

#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/http/client/http_client.h"
#include "common/vendor/ses/sns.h"

enum { ANSWER_MAX = 16384, KEPT_MAX = 64, WHOLE_MS = 5000, URL_SIZE = 2200 };

static const int64_t kept_us = INT64_C(86400) * 1000000;

struct SnsLink {
    HttpClient *http;
    char *origin;
    Map *kept; // URL -> Certificate
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

typedef struct Certificate {
    int64_t at_us; // monotonic
    size_t len;
    char pem[];
} Certificate;

typedef struct Fetch {
    SnsLink *link;
    Buf body;
    SnsDone done;
    void *ctx;
    char *url; // of a certificate; NULL: of a confirmation
} Fetch;

SnsLink *sns_link_new(uv_loop_t *loop, const char *origin, Error *err)
{
    SnsLink *link = xcalloc(1, sizeof *link);
    const HttpGuard guard = {0}; // public addresses, and https
    link->http = http_client_new(
        loop, &(HttpClientOptions){.guard = origin[0] == '\0' ? &guard : NULL}, err);
    if (link->http == NULL) {
        free(link);
        return NULL;
    }
    link->origin = xstrdup(origin);
    link->kept = map_new(free);
    return link;
}

static void on_http_freed(void *ctx)
{
    SnsLink *link = ctx;
    map_free(link->kept);
    free(link->origin);
    link->on_freed(link->freed_ctx);
    free(link);
}

void sns_link_free(SnsLink *link, void (*on_freed)(void *ctx), void *ctx)
{
    link->on_freed = on_freed;
    link->freed_ctx = ctx;
    http_client_free(link->http, on_http_freed, link);
}

// ---- fetching ----

static bool on_http_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    Fetch *fetch = ctx;
    return buf_append(&fetch->body, bytes, len);
}

static void keep(Fetch *fetch)
{
    Str pem = buf_view(&fetch->body);
    if (map_count(fetch->link->kept) >= KEPT_MAX) { // fetched again when needed
        map_free(fetch->link->kept);
        fetch->link->kept = map_new(free);
    }
    Certificate *certificate = xmalloc(sizeof *certificate + pem.len + 1);
    certificate->at_us = clock_mono_us();
    certificate->len = pem.len;
    (void)str_to_c(pem, certificate->pem, pem.len + 1);
    map_put(fetch->link->kept, str_from(fetch->url), certificate);
}

static void on_http_done(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    (void)call;
    Fetch *fetch = ctx;
    Error err = {0};
    bool good = answer->outcome == HTTP_ANSWERED && answer->status == 200 && !answer->stopped;
    if (!good) {
        (void)error_set(
            &err, ERROR_TRANSIENT, "SNS was asked and answered %d: %.120s", answer->status,
            answer->err.kind == ERROR_NONE ? "not what was expected" : answer->err.text);
    } else if (fetch->url != NULL && sns_check_certificate(buf_view(&fetch->body), &err)) {
        keep(fetch);
    }
    fetch->done(fetch->ctx, buf_view(&fetch->body), err.kind == ERROR_NONE ? NULL : &err);
    buf_done(&fetch->body);
    free(fetch->url);
    free(fetch);
}

// The same path and query, elsewhere.
static void place(const SnsLink *link, Str url, char out[URL_SIZE])
{
    Str rest = str_slice(url, sizeof "https://" - 1, url.len);
    ptrdiff_t slash = str_find(rest, '/');
    Str path = slash < 0 ? STR("/") : str_slice(rest, (size_t)slash, rest.len);
    if (link->origin[0] == '\0') {
        (void)snprintf(out, URL_SIZE, STR_FMT, STR_ARG(url));
    } else {
        (void)snprintf(out, URL_SIZE, "%s" STR_FMT, link->origin, STR_ARG(path));
    }
}

static void fetch_url(SnsLink *link, Str url, bool certificate, SnsDone done, void *ctx)
{
    char place_of[URL_SIZE];
    Fetch *fetch = xcalloc(1, sizeof *fetch);
    *fetch = (Fetch){.link = link, .done = done, .ctx = ctx};
    buf_init(&fetch->body, ANSWER_MAX);
    if (certificate) {
        fetch->url = xmalloc(url.len + 1);
        (void)str_to_c(url, fetch->url, url.len + 1);
    }
    place(link, url, place_of);
    (void)http_call(
        link->http, &(HttpCallOptions){
                        .method = "GET",
                        .url = place_of,
                        .whole_ms = WHOLE_MS,
                        .on_piece = on_http_piece,
                        .on_done = on_http_done,
                        .ctx = fetch});
}

void sns_certificate(SnsLink *link, Str url, SnsDone done, void *ctx)
{
    const Certificate *kept = map_get(link->kept, url);
    if (kept != NULL && clock_mono_us() - kept->at_us < kept_us) {
        done(ctx, str_of(kept->pem, kept->len), NULL);
        return;
    }
    fetch_url(link, url, true, done, ctx);
}

void sns_confirm(SnsLink *link, Str url, SnsDone done, void *ctx)
{
    fetch_url(link, url, false, done, ctx);
}
