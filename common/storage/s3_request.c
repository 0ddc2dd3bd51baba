// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/storage/s3_internal.h"

enum { CONNECT_MS = 5000, AUTHORIZATION_MAX = 4096 };

// SHA-256 of nothing: the payload of what has no body.
static const char EMPTY_HASH[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

typedef struct Request {
    Arena *arena;
    SigV4Pair query[SIGV4_QUERY_MAX], headers[SIGV4_HEADERS_MAX];
    SigV4Request sent;
} Request;

static void add_query(Request *request, const char *name, Str value)
{
    request->query[request->sent.query_count++] = (SigV4Pair){str_from(name), value};
}

static void add_header(Request *request, const char *name, const char *value)
{
    request->headers[request->sent.header_count++] = (SigV4Pair){str_from(name), str_from(value)};
}

// A header of the vendor's: "x-amz-date", "x-goog-date".
static void add_own(Request *request, const S3 *s3, const char *name, const char *value)
{
    add_header(request, arena_printf(request->arena, "%s%s", s3->url.words->prefix, name), value);
}

// ---- what each step asks ----

const char *s3_method(const S3Call *call)
{
    if (call->verb == S3_PUT) {
        static const char *const of_step[] = {
            [S3_ACT] = "PUT",
            [S3_CHECK] = "HEAD",
            [S3_COMPARE_HEAD] = "HEAD",
            [S3_COMPARE_GET] = "GET"};
        return of_step[call->step];
    }
    static const char *const of_verb[] = {
        [S3_GET] = "GET", [S3_HEAD] = "HEAD", [S3_LIST] = "GET", [S3_DELETE] = "DELETE"};
    return of_verb[call->verb];
}

static bool sends_body(const S3Call *call)
{
    return call->verb == S3_PUT && call->step == S3_ACT;
}

// Google's condition is a number: 0 for none, or the version that S3_CHECK has read.
static void add_condition(Request *request, const S3Call *call)
{
    const S3 *s3 = call->s3;
    StorageCondition condition = call->put->condition;
    if (condition == STORAGE_ALWAYS || s3->url.condition == S3_NO_CONDITION) {
        return;
    }
    if (s3->url.condition == S3_BY_GENERATION) {
        const char *wanted = condition == STORAGE_IF_ABSENT ? "0" : call->info.version;
        add_own(request, s3, "if-generation-match", wanted);
    } else if (condition == STORAGE_IF_ABSENT) {
        add_header(request, "if-none-match", "*");
    } else {
        add_header(request, "if-match", call->put->etag); // bare: Ceph knows it only so, S3 either
    }
}

static void add_put(Request *request, const S3Call *call)
{
    add_condition(request, call);
    if (call->put->installation != NULL) {
        add_own(request, call->s3, "meta-installation", call->put->installation);
    }
    if (call->put->storage_class != NULL) {
        add_own(request, call->s3, "storage-class", call->put->storage_class);
    }
}

// From where the last attempt was cut; what follows must be of the same object.
static void add_range(Request *request, const S3Call *call)
{
    uint64_t first = call->offset + call->delivered;
    if (call->len > 0) {
        const char *range = arena_printf(
            request->arena, "bytes=%llu-%llu", (unsigned long long)first,
            (unsigned long long)(call->offset + call->len - 1));
        add_header(request, "range", range);
    } else if (first > 0) {
        add_header(
            request, "range",
            arena_printf(request->arena, "bytes=%llu-", (unsigned long long)first));
    }
    if (call->delivered > 0 && call->info.etag[0] != '\0') {
        add_header(request, "if-match", call->info.etag);
    }
}

static void add_list(Request *request, const S3Call *call, Str prefix)
{
    add_query(request, "list-type", STR("2"));
    add_query(request, "prefix", prefix);
    if (call->page.token.len > 0) {
        add_query(request, "continuation-token", buf_view(&call->page.token));
    }
}

static void add_version(Request *request, const S3Call *call)
{
    bool goog = call->s3->url.words == &sigv4_goog;
    if (call->version != NULL) {
        add_query(request, goog ? "generation" : "versionId", str_from(call->version));
    }
}

static void add_verb(Request *request, const S3Call *call, Str full_key)
{
    if (sends_body(call)) {
        add_put(request, call);
    } else if (call->verb == S3_GET) {
        add_range(request, call);
    } else if (call->verb == S3_LIST) {
        add_list(request, call, full_key);
    } else if (call->verb == S3_DELETE) {
        add_version(request, call);
    }
}

// ---- signed and sent ----

static void add_common(Request *request, const S3Call *call)
{
    const S3 *s3 = call->s3;
    char stamp[SIGV4_STAMP_SIZE];
    sigv4_stamp(request->sent.at_us, stamp);
    char *payload = arena_alloc(request->arena, 2 * SHA256_LEN + 1);
    if (sends_body(call)) {
        hex_encode(call->put->sha256, SHA256_LEN, payload);
    } else {
        memcpy(payload, EMPTY_HASH, sizeof EMPTY_HASH);
    }
    request->sent.payload = str_from(payload);
    add_header(request, "host", s3->url.host);
    add_own(request, s3, "date", arena_cstr(request->arena, str_from(stamp)));
    add_own(request, s3, "content-sha256", payload);
    if (s3->token != NULL) {
        add_own(request, s3, "security-token", s3->token);
    }
}

static const char *authorize(const Request *request, const S3 *s3)
{
    SigV4Key key = {
        .words = s3->url.words,
        .id = str_from(s3->key_id),
        .secret = str_from(s3->secret),
        .region = str_from(s3->url.region),
        .service = str_from(s3->url.words == &sigv4_goog ? "storage" : "s3")};
    Buf text;
    buf_init(&text, AUTHORIZATION_MAX);
    sigv4_authorization(&key, &request->sent, &text);
    const char *copy = arena_cstr(request->arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static const char *url_of(const Request *request, const S3 *s3)
{
    Buf url;
    buf_init(&url, HTTP_URL_MAX);
    buf_cstr(&url, s3->url.origin);
    sigv4_encode(request->sent.path, true, &url);
    if (request->sent.query_count > 0) {
        buf_char(&url, '?');
        sigv4_query(&request->sent, &url);
    }
    const char *copy = arena_cstr(request->arena, buf_view(&url));
    buf_done(&url);
    return copy;
}

static HttpCall *send_signed(
    const Request *request, S3Call *call, HttpPiece on_piece, HttpDone on_done)
{
    HttpCallOptions options = {
        .method = s3_method(call),
        .url = url_of(request, call->s3),
        .connect_ms = CONNECT_MS,
        .idle_ms = call->s3->url.timeout_ms,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = call};
    if (sends_body(call)) {
        options.body = call->put->bytes;
        options.fd = call->put->fd;
        options.body_len = call->put->len;
    }
    size_t count = 0;
    for (size_t i = 0; i < request->sent.header_count; i++) {
        options.headers[count++] =
            (HttpCallHeader){request->headers[i].name.ptr, request->headers[i].value.ptr};
    }
    options.headers[count] = (HttpCallHeader){"authorization", authorize(request, call->s3)};
    return http_call(call->s3->http, &options);
}

HttpCall *s3_send(S3Call *call, HttpPiece on_piece, HttpDone on_done)
{
    const S3 *s3 = call->s3;
    Request request = {.arena = arena_new(0)};
    Str full_key =
        str_from(arena_printf(request.arena, "%s" STR_FMT, s3->url.prefix, STR_ARG(call->key)));
    bool of_bucket = call->verb == S3_LIST;
    request.sent = (SigV4Request){
        .method = str_from(s3_method(call)),
        .path = str_from(arena_printf(
            request.arena, "/%s%s" STR_FMT, s3->url.bucket, of_bucket ? "" : "/",
            STR_ARG(of_bucket ? STR_EMPTY : full_key))),
        .query = request.query,
        .headers = request.headers,
        .at_us = clock_now_us() + s3->skew_us};
    add_common(&request, call);
    add_verb(&request, call, full_key);
    HttpCall *http = send_signed(&request, call, on_piece, on_done);
    arena_free(request.arena);
    return http;
}
