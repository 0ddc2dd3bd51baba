// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/assets/assets_public.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

// One call in handling; in the request's arena.
typedef struct Show {
    AssetsPublic *assets;
    HttpRequest *http;
    AssetReading reading;
} Show;

void assets_public_init(
    AssetsPublic *ret, AssetObjects *objects, const Assets *assets, Metrics *metrics)
{
    static const char *const names[] = {
        [ANSWER_SHOWN] = "shown",     [ANSWER_UNCHANGED] = "unchanged", [ANSWER_ABSENT] = "absent",
        [ANSWER_DAMAGED] = "damaged", [ANSWER_BUSY] = "busy",           [ANSWER_FAILED] = "failed",
    };
    *ret = (AssetsPublic){.objects = objects, .assets = assets};
    for (AssetAnswer i = ANSWER_SHOWN; i < ANSWER_COUNT; i++) {
        char labels[48];
        (void)snprintf(labels, sizeof labels, "answer=\"%s\"", names[i]);
        ret->answers[i] = metrics_counter(
            metrics, "stentor_gateway_asset_answers_total", labels,
            "Requests for template assets; damaged: the object has other bytes than its name says");
    }
}

bool assets_public_admit(HttpRequest *http)
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

// ---- answers ----

static void count(const Show *show, AssetAnswer answer)
{
    metric_add(show->assets->answers[answer], 1);
}

static void name_fault(const Show *show, const Error *err)
{
    bool is_new = false;
    HttpRequest *http = show->http;
    const char *id = faults_note(&show->assets->faults, err, clock_now_us(), &is_new);
    if (is_new) {
        LOG(LOG_ERROR, "an asset cannot be shown", log_text("fault", id),
            log_text("request", http->id), log_error(err));
    }
    http->instance = arena_printf(http->arena, "urn:stentor:fault:%s", id);
}

static void answer_absent(HttpRequest *http)
{
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(http, 404, "not-found", "Not found", NULL, "there is no such asset");
}

static void answer_later(HttpRequest *http, const char *why)
{
    http_response_header(http, "Retry-After", STR("2"));
    http_response_header(http, "Cache-Control", STR("no-store"));
    http_problem(http, 503, "unavailable", "Temporarily unavailable", NULL, "%s", why);
}

static void answer_damaged(const Show *show, const Error *err)
{
    name_fault(show, err);
    http_response_header(show->http, "Cache-Control", STR("no-store"));
    http_problem(
        show->http, 502, "asset-damaged", "The asset is damaged", NULL,
        "the stored object has other bytes than its name says, so it is not shown; the operator "
        "puts the file again: stentor asset put");
}

static Str tag_of(const Show *show)
{
    return str_from(
        arena_printf(show->http->arena, "\"" STR_FMT "\"", STR_ARG(show->reading.place.hex)));
}

// What the name says never changes, so a cache keeps it for ever.
static void add_headers(const Show *show)
{
    HttpRequest *http = show->http;
    http_response_header(http, "Cache-Control", STR("public, max-age=31536000, immutable"));
    http_response_header(http, "ETag", tag_of(show));
    http_response_header(http, "X-Content-Type-Options", STR("nosniff"));
    http_response_header(http, "Content-Security-Policy", STR("default-src 'none'; sandbox"));
    http_response_header(http, "Cross-Origin-Resource-Policy", STR("cross-origin"));
}

static void answer_bytes(const Show *show, AssetBlob *blob)
{
    add_headers(show);
    asset_blob_hold(blob);
    arena_own(show->http->arena, asset_blob_release, blob);
    http_respond_kept(show->http, 200, asset_type_name(blob->type), blob->bytes);
}

static void answer(Show *show, AssetOutcome outcome, AssetBlob *blob, const Error *err)
{
    switch (outcome) {
    case ASSET_SHOWN:
        count(show, ANSWER_SHOWN);
        answer_bytes(show, blob);
        return;
    case ASSET_ABSENT:
        count(show, ANSWER_ABSENT);
        answer_absent(show->http);
        return;
    case ASSET_DAMAGED:
        count(show, ANSWER_DAMAGED);
        answer_damaged(show, err);
        return;
    case ASSET_BUSY:
        count(show, ANSWER_BUSY);
        answer_later(show->http, "many assets are being read; ask again in a moment");
        return;
    case ASSET_FAILED:
        count(show, ANSWER_FAILED);
        name_fault(show, err);
        answer_later(show->http, "the object storage does not answer");
        return;
    }
}

static void on_read(void *ctx, AssetOutcome outcome, AssetBlob *blob, const Error *err)
{
    answer(ctx, outcome, blob, err);
}

// ---- the call ----

// If-None-Match: a list of tags, of which one may be weak, or "*".
static bool has_it(const Show *show)
{
    Str rest = http_header(show->http, "If-None-Match");
    Str tag = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, ',', &tag)) {
        tag = str_trim(tag);
        tag = str_starts(tag, STR("W/")) ? str_slice(tag, 2, tag.len) : tag;
        if (str_eq(tag, tag_of(show))) {
            return true;
        }
    }
    return false;
}

void assets_public_handle(AssetsPublic *assets, HttpRequest *http)
{
    Show *show = arena_zalloc(http->arena, sizeof *show);
    *show = (Show){.assets = assets, .http = http};
    AssetReading *reading = &show->reading;
    if (!asset_path_parse(http->path, &reading->place)) {
        count(show, ANSWER_ABSENT);
        answer_absent(http);
        return;
    }
    if (has_it(show)) {
        count(show, ANSWER_UNCHANGED);
        add_headers(show);
        http_respond(http, 304, NULL, STR_EMPTY);
        return;
    }
    if (!asset_objects_ready(assets->objects)) {
        count(show, ANSWER_FAILED);
        answer_later(http, "assets cannot be shown: there is no object storage");
        return;
    }
    reading->named = assets_name(assets->assets, reading->place.tenant, reading->place.hex);
    reading->on_read = on_read;
    reading->ctx = show;
    asset_objects_read(assets->objects, reading);
}
