// SPDX-License-Identifier: Apache-2.0
// The ring and the way of a batch, in the order in which it happens: added, gathered, packed,
// posted, and counted or tried again.
#include "common/trace/tracer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/client/http_client.h"
#include "common/ticks/ticks.h"

enum {
    TICK_MS = 1000,
    POST_MS = 10000, // the whole of one
    CLOSE_MS = 2000,
    WAIT_MAX_MS = 60000,
    PAIRS_MAX = 64,
    HEADERS_MAX = HTTP_CALL_HEADERS_MAX - 4,
    ANSWER_MAX = 64 * 1024,
    REQUEST_MAX = TRACER_BYTES_MAX + 64 * 1024,
    GZIP_LEVEL = 1,
    GZIP_WINDOW = 15 + 16, // 16: gzip's header and trailer
};

struct Tracer {
    uv_loop_t *loop;
    uv_timer_t timer;
    HttpClient *client;
    Arena *arena; // what the options say
    char *url;
    TracePair headers[HEADERS_MAX];
    size_t header_count;
    TraceSampler sampler;
    Str resource, version;
    Str ring[TRACER_SPANS_MAX]; // packed, each allocated
    size_t first, count, bytes;
    int64_t oldest_us; // when the first of those that wait was added, of clock_mono_us()
    Arena *scratch;
    // The batch on the way.
    char *body;
    size_t body_len, batch;
    unsigned tries;
    HttpCall *call;      // NULL: it waits for retry_at_us, or there is none
    int64_t retry_at_us; // of clock_mono_us()
    Buf answer;
    TracerStats stats;
    bool failing; // was logged
    bool closing;
    int64_t close_by_us;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static void post(Tracer *t);
static void send_next(Tracer *t);

// ---- a span ----

const TraceSampler *tracer_sampler(const Tracer *tracer)
{
    return &tracer->sampler;
}

bool tracer_wants(const Tracer *tracer, const TraceContext *context, bool keep)
{
    return tracer != NULL && (keep || context->sampled);
}

void tracer_add(Tracer *t, const Span *span)
{
    if (t == NULL) {
        return;
    }
    if (t->count == TRACER_SPANS_MAX || t->bytes >= TRACER_BYTES_MAX) {
        t->stats.full++;
        return;
    }
    Str packed = span_pack(span, t->scratch);
    char *copy = xmalloc(packed.len);
    memcpy(copy, packed.ptr, packed.len);
    arena_reset(t->scratch);
    t->ring[(t->first + t->count) % TRACER_SPANS_MAX] = str_of(copy, packed.len);
    t->oldest_us = t->count == 0 ? clock_mono_us() : t->oldest_us;
    t->count++;
    t->bytes += packed.len;
    if (t->count == TRACER_BATCH_MAX && t->body == NULL) {
        uv_timer_start(&t->timer, t->timer.timer_cb, 0, TICK_MS); // from the loop, not from here
    }
}

TracerStats tracer_stats(const Tracer *tracer)
{
    TracerStats stats = {0};
    if (tracer != NULL) {
        stats = tracer->stats;
        stats.waiting = tracer->count + tracer->batch;
    }
    return stats;
}

// ---- a batch ----

static void drop_spans(Tracer *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Str *span = &t->ring[t->first];
        t->bytes -= span->len;
        free((char *)(uintptr_t)span->ptr);
        t->first = (t->first + 1) % TRACER_SPANS_MAX;
        t->count--;
    }
}

// NULL: zlib could not, which only a lack of memory does.
static char *gzip(Str text, size_t *ret_len)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return NULL;
    }
    size_t room = deflateBound(&stream, (uLong)text.len);
    char *out = xmalloc(room);
    stream.next_in = (Bytef *)(uintptr_t)text.ptr;
    stream.avail_in = (uInt)text.len;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)room;
    bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *ret_len = room - stream.avail_out;
    deflateEnd(&stream);
    if (!done) {
        free(out);
        return NULL;
    }
    return out;
}

static void begin_batch(Tracer *t)
{
    Str spans[TRACER_BATCH_MAX];
    Buf request;
    size_t count = t->count < TRACER_BATCH_MAX ? t->count : TRACER_BATCH_MAX;
    for (size_t i = 0; i < count; i++) {
        spans[i] = t->ring[(t->first + i) % TRACER_SPANS_MAX];
    }
    buf_init(&request, REQUEST_MAX);
    bool packed = trace_request_pack(&request, t->resource, t->version, spans, count);
    t->body = packed ? gzip(buf_view(&request), &t->body_len) : NULL;
    buf_done(&request);
    drop_spans(t, count);
    t->oldest_us = clock_mono_us();
    t->batch = count;
    t->tries = 0;
    if (t->body == NULL) {
        t->stats.given_up += count;
        t->batch = 0;
    }
}

static void end_batch(Tracer *t, uint64_t *counter)
{
    *counter += t->batch;
    t->batch = 0;
    t->retry_at_us = 0;
    free(t->body);
    t->body = NULL;
}

// ---- posting ----

static void note_failure(Tracer *t, const HttpAnswer *answer)
{
    t->stats.failures++;
    if (t->failing) {
        return;
    }
    t->failing = true;
    LOG(LOG_WARN,
        "the collector of traces does not take spans; they are tried again, then dropped and "
        "counted (HINT: OTEL_EXPORTER_OTLP_ENDPOINT is the address of OTLP over HTTP, mostly port "
        "4318)",
        log_text("url", t->url), log_int("status", answer->status), log_error(&answer->err));
}

static bool may_pass(const HttpAnswer *answer)
{
    int status = answer->status;
    return answer->outcome != HTTP_ANSWERED || status == 429 || status == 502 || status == 503 ||
           status == 504;
}

static int64_t wait_ms(const Tracer *t, Str retry_after)
{
    int64_t asked = http_retry_after_ms(retry_after, clock_now_us());
    int64_t own = INT64_C(1000) << (t->tries - 1);
    int64_t wait = asked > 0 ? asked : own;
    return wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS;
}

static void take_answer(Tracer *t, HttpCall *call, const HttpAnswer *answer)
{
    if (answer->outcome == HTTP_ANSWERED && answer->status / 100 == 2) {
        uint64_t rejected = (uint64_t)trace_rejected(buf_view(&t->answer));
        rejected = rejected < t->batch ? rejected : t->batch;
        t->stats.refused += rejected;
        t->batch -= rejected;
        if (t->failing) {
            t->failing = false;
            LOG(LOG_INFO, "the collector of traces takes spans again", log_text("url", t->url));
        }
        end_batch(t, &t->stats.exported);
        return;
    }
    note_failure(t, answer);
    if (!may_pass(answer)) {
        end_batch(t, &t->stats.refused);
    } else if (t->tries >= TRACER_TRIES_MAX || t->closing) {
        end_batch(t, &t->stats.given_up);
    } else {
        t->retry_at_us =
            clock_mono_us() + wait_ms(t, http_call_header(call, "Retry-After")) * INT64_C(1000);
    }
}

static bool on_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    Tracer *t = ctx;
    return buf_append(&t->answer, bytes, len);
}

static void on_done(void *ctx, HttpCall *call, const HttpAnswer *answer)
{
    Tracer *t = ctx;
    t->call = NULL;
    take_answer(t, call, answer);
    send_next(t);
}

static void post(Tracer *t)
{
    HttpCallOptions options = {
        .method = "POST",
        .url = t->url,
        .headers = {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}},
        .body = t->body,
        .body_len = t->body_len,
        .whole_ms = t->closing ? CLOSE_MS : POST_MS,
        .answer_max = ANSWER_MAX,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = t,
    };
    for (size_t i = 0; i < t->header_count; i++) {
        options.headers[2 + i] = (HttpCallHeader){t->headers[i].key, t->headers[i].value};
    }
    buf_clear(&t->answer);
    t->tries++;
    t->retry_at_us = 0;
    t->call = http_call(t->client, &options);
}

// ---- closing ----

static void on_client_freed(void *ctx)
{
    Tracer *t = ctx;
    void (*on_freed)(void *) = t->on_freed;
    void *freed_ctx = t->freed_ctx;
    drop_spans(t, t->count);
    free(t->body);
    buf_done(&t->answer);
    arena_free(t->scratch);
    arena_free(t->arena);
    free(t);
    on_freed(freed_ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Tracer *t = handle->data;
    http_client_free(t->client, on_client_freed, t);
}

static void finish(Tracer *t)
{
    if (!uv_is_closing((uv_handle_t *)&t->timer)) {
        uv_close((uv_handle_t *)&t->timer, on_timer_closed);
    }
}

void tracer_free(Tracer *t, void (*on_freed)(void *ctx), void *ctx)
{
    t->on_freed = on_freed;
    t->freed_ctx = ctx;
    t->closing = true;
    t->close_by_us = clock_mono_us() + CLOSE_MS * INT64_C(1000);
    uv_timer_start(&t->timer, t->timer.timer_cb, 0, TICK_MS / 10);
}

// ---- whose turn it is ----

static void close_next(Tracer *t)
{
    bool over = clock_mono_us() >= t->close_by_us || t->failing;
    if (t->call != NULL) {
        if (over) {
            http_call_cancel(t->call);
        }
    } else if (over || t->count == 0) {
        finish(t);
    } else {
        begin_batch(t);
        if (t->body != NULL) {
            post(t);
        }
    }
}

static void send_next(Tracer *t)
{
    int64_t now_us = clock_mono_us();
    if (t->closing) {
        if (t->call == NULL && t->body != NULL) {
            end_batch(t, &t->stats.given_up); // it waited for its next try
        }
        close_next(t);
    } else if (t->call != NULL) {
        return;
    } else if (t->body != NULL) {
        if (now_us >= t->retry_at_us) {
            post(t);
        }
    } else if (
        t->count >= TRACER_BATCH_MAX ||
        (t->count > 0 && now_us - t->oldest_us >= TRACER_BATCH_MS * INT64_C(1000))) {
        begin_batch(t);
        if (t->body != NULL) {
            post(t);
        }
    }
}

static void on_tick(uv_timer_t *timer)
{
    ticks_keep(timer);
    send_next(timer->data);
}

// ---- beginning ----

static bool read_url(const TracerOptions *options, Arena *arena, char **ret, Error *err)
{
    bool whole = options->traces_endpoint[0] != '\0';
    const char *name = whole ? "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" : "OTEL_EXPORTER_OTLP_ENDPOINT";
    Str url = str_from(whole ? options->traces_endpoint : options->endpoint);
    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://"))) {
        return error_set(
            err, ERROR_CONFIG, "%s is '" STR_FMT "': expected a URL such as http://127.0.0.1:4318",
            name, STR_ARG(str_slice(url, 0, 120)));
    }
    if (whole) {
        *ret = arena_cstr(arena, url);
        return true;
    }
    while (str_ends(url, STR("/"))) {
        url = str_slice(url, 0, url.len - 1);
    }
    *ret = arena_printf(arena, STR_FMT "/v1/traces", STR_ARG(url));
    return true;
}

static bool read_resource(Tracer *t, const TracerOptions *options, Error *err)
{
    enum { OWN = 4 };
    TracePair pairs[PAIRS_MAX + OWN];
    size_t count = 0, own = 0, named = 0;
    if (options->service_name[0] != '\0') {
        pairs[own++] = (TracePair){"service.name", options->service_name};
    }
    if (!trace_pairs(
            "OTEL_RESOURCE_ATTRIBUTES", str_from(options->resource_attributes), t->arena,
            pairs + own, PAIRS_MAX, &named, err)) {
        return false;
    }
    count = own + named;
    // What the operator says comes first.
    if (own == 0) {
        pairs[count++] = (TracePair){"service.name", options->program};
    }
    pairs[count++] = (TracePair){"service.namespace", "stentor"};
    pairs[count++] = (TracePair){"service.instance.id", options->instance};
    pairs[count++] = (TracePair){"service.version", options->version};
    t->resource = trace_resource_pack(pairs, count, t->arena);
    t->version = arena_str(t->arena, str_from(options->version));
    return true;
}

static bool read_options(Tracer *t, const TracerOptions *options, Error *err)
{
    return read_url(options, t->arena, &t->url, err) &&
           trace_pairs(
               "OTEL_EXPORTER_OTLP_HEADERS", str_from(options->headers), t->arena, t->headers,
               HEADERS_MAX, &t->header_count, err) &&
           read_resource(t, options, err);
}

bool tracer_new(uv_loop_t *loop, const TracerOptions *options, Tracer **ret, Error *err)
{
    TraceSampler sampler;
    *ret = NULL;
    if (!trace_sampler_parse(
            str_from(options->sampler), str_from(options->sampler_argument), &sampler, err)) {
        return false;
    }
    bool named = options->endpoint[0] != '\0' || options->traces_endpoint[0] != '\0';
    if (!named || sampler.none) {
        return true;
    }
    Tracer *t = xcalloc(1, sizeof *t);
    t->arena = arena_new(0);
    t->scratch = arena_new(0);
    t->sampler = sampler;
    t->loop = loop;
    HttpClientOptions client = {.calls = 1, .agent = "stentor-otlp"};
    if (!read_options(t, options, err) ||
        (t->client = http_client_new(loop, &client, err)) == NULL) {
        arena_free(t->scratch);
        arena_free(t->arena);
        free(t);
        return false;
    }
    buf_init(&t->answer, ANSWER_MAX);
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
    ticks_start(&t->timer, on_tick, TICK_MS);
    *ret = t;
    return true;
}
