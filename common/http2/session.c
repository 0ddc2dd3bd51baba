// SPDX-License-Identifier: Apache-2.0
#include "common/http2/session.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum {
    PULL_BYTES = 64 * 1024,
    CONNECTION_WINDOW = 4 * 1024 * 1024,
    STREAM_WINDOW = 64 * 1024,
    HEADER_LIST_MAX = 64 * 1024, // says the client; each exchange has its own bound
    FIELD_COST = 32,             // of RFC 9113, 6.5.2
    FIXED_FIELDS = 5,            // :method :scheme :authority :path content-length
    REQUEST_FIELDS_MAX = 48,
    NUMBER_MAX = 24,
};

struct Http2Session {
    nghttp2_session *h2;
    uint32_t streams_max;
    size_t open; // streams that nghttp2 has, abandoned ones too
    bool ready, proven, draining;
    uint64_t pongs;
    char goaway_text[HTTP2_GOAWAY_TEXT_MAX + 1];
    Http2Exchange *first;
};

static Http2Exchange *exchange_of(nghttp2_session *h2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(h2, stream);
}

// ---- the list of those that are open ----

static void list(Http2Session *session, Http2Exchange *exchange)
{
    exchange->session = session;
    exchange->newer = NULL;
    exchange->older = session->first;
    if (session->first != NULL) {
        session->first->newer = exchange;
    }
    session->first = exchange;
}

static void unlist(Http2Exchange *exchange)
{
    Http2Session *session = exchange->session;
    *(exchange->newer != NULL ? &exchange->newer->older : &session->first) = exchange->older;
    if (exchange->older != NULL) {
        exchange->older->newer = exchange->newer;
    }
    exchange->session = NULL;
}

static void end(Http2Exchange *exchange, Http2End how, uint32_t error_code)
{
    unlist(exchange);
    if (how == HTTP2_END_REFUSED) {
        exchange->handed = false;
    }
    exchange->on_end(exchange, how, error_code);
}

static void reset(Http2Session *session, int32_t stream)
{
    nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

// ---- the answer ----

static void keep_field(Http2Exchange *exchange, Str name, Str value)
{
    size_t at = exchange->text.len;
    if (exchange->field_count == HTTP2_FIELDS_MAX ||
        !buf_reserve(&exchange->text, name.len + value.len)) {
        return; // beyond the bound a header is not seen
    }
    buf_str(&exchange->text, name);
    buf_str(&exchange->text, value);
    size_t n = exchange->field_count++;
    exchange->fields[n].name = at;
    exchange->fields[n].name_len = name.len;
    exchange->fields[n].value = at + name.len;
    exchange->fields[n].value_len = value.len;
}

static void take_status(Http2Exchange *exchange, Str value)
{
    int64_t status = 0;
    exchange->status =
        str_to_i64(value, &status) && status >= 100 && status <= 999 ? (int)status : 0;
    exchange->field_count = 0; // those of a 1xx before
    buf_clear(&exchange->text);
}

static int on_header(
    nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
    const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
    Http2Exchange *exchange = exchange_of(h2, frame->hd.stream_id);
    (void)flags;
    (void)ctx;
    if (exchange == NULL || exchange->stopped) {
        return 0;
    }
    exchange->head_bytes += name_len + value_len + FIELD_COST;
    if (exchange->head_bytes > exchange->head_max) {
        exchange->head_too_long = true;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; // the stream is reset
    }
    Str name_text = str_of(name, name_len);
    if (exchange->head) {
        return 0; // a trailer
    }
    if (str_eq(name_text, STR(":status"))) {
        take_status(exchange, str_of(value, value_len));
    } else {
        keep_field(exchange, name_text, str_of(value, value_len));
    }
    return 0;
}

static int on_data(
    nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t len, void *ctx)
{
    Http2Session *session = ctx;
    Http2Exchange *exchange = exchange_of(h2, stream);
    (void)flags;
    if (exchange == NULL || exchange->stopped) {
        return 0;
    }
    size_t room = exchange->answer_max - exchange->answer_bytes;
    size_t taken = len < room ? len : room;
    exchange->answer_bytes += taken;
    bool enough = taken < len;
    if (taken > 0) {
        enough |= !exchange->on_piece(exchange, str_of(bytes, taken));
    }
    if (enough && exchange->session != NULL) { // else it was abandoned
        exchange->stopped = true;
        reset(session, stream);
    }
    return 0;
}

static void take_end(Http2Session *session, int32_t stream, Http2Exchange *exchange)
{
    exchange->ended = true;
    if (!exchange->handed) {
        reset(session, stream); // the answer is there, the rest of the body is not wanted
    }
}

static void take_goaway(Http2Session *session, const nghttp2_goaway *goaway)
{
    size_t len = 0;
    session->draining = true;
    if (goaway->opaque_data_len == 0) {
        return; // one before may have said why
    }
    for (; len < goaway->opaque_data_len && len < HTTP2_GOAWAY_TEXT_MAX; len++) {
        uint8_t c = goaway->opaque_data[len];
        session->goaway_text[len] = c >= ' ' && c < 0x7f ? (char)c : '?';
    }
    session->goaway_text[len] = '\0';
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    Http2Session *session = ctx;
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (frame->hd.type == NGHTTP2_SETTINGS) {
        session->ready |= !is_ack;
    } else if (frame->hd.type == NGHTTP2_PING) {
        session->pongs += is_ack;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        take_goaway(session, &frame->goaway);
    } else if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
        Http2Exchange *exchange = exchange_of(h2, frame->hd.stream_id);
        if (exchange == NULL) {
            return 0;
        }
        if (frame->hd.type == NGHTTP2_HEADERS && exchange->status >= 200) {
            exchange->head = true;
            session->proven = true;
        }
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            take_end(session, frame->hd.stream_id, exchange);
        }
    }
    return 0;
}

static int on_invalid_frame(nghttp2_session *h2, const nghttp2_frame *frame, int code, void *ctx)
{
    Http2Exchange *exchange = exchange_of(h2, frame->hd.stream_id);
    (void)ctx;
    if (exchange != NULL && code != NGHTTP2_ERR_REFUSED_STREAM) {
        exchange->invalid = true;
    }
    return 0;
}

static Http2End end_of(const Http2Exchange *exchange, uint32_t error_code)
{
    if (exchange->stopped) {
        return HTTP2_END_STOPPED;
    }
    if (exchange->head && exchange->ended) {
        return HTTP2_END_ANSWERED;
    }
    if (exchange->head_too_long) {
        return HTTP2_END_LONG_HEAD;
    }
    if (exchange->invalid) {
        return HTTP2_END_INVALID;
    }
    bool refused = error_code == NGHTTP2_REFUSED_STREAM && exchange->status == 0;
    return refused ? HTTP2_END_REFUSED : HTTP2_END_RESET;
}

// By RST_STREAM of either side, by the end of both halves, and by a GOAWAY with a lower last stream
// (nghttp2 gives REFUSED_STREAM then).
static int on_stream_close(nghttp2_session *h2, int32_t stream, uint32_t error_code, void *ctx)
{
    Http2Session *session = ctx;
    Http2Exchange *exchange = exchange_of(h2, stream);
    if (session->open > 0) {
        session->open--;
    }
    if (exchange != NULL) {
        end(exchange, end_of(exchange, error_code), error_code);
    }
    return 0;
}

// ---- the request ----

static ssize_t on_body_wanted(
    nghttp2_session *h2, int32_t stream, uint8_t *to, size_t len, uint32_t *flags,
    nghttp2_data_source *source, void *ctx)
{
    Http2Exchange *exchange = exchange_of(h2, stream);
    (void)source;
    (void)ctx;
    if (exchange == NULL) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; // abandoned: its reset is under way
    }
    size_t left = exchange->body.len - exchange->body_taken;
    size_t taken = left < len ? left : len;
    memcpy(to, exchange->body.ptr + exchange->body_taken, taken);
    exchange->body_taken += taken;
    if (taken == left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        exchange->handed = true;
    }
    return (ssize_t)taken;
}

// A request's head that could not be sent: the server never sees it.
static int on_not_sent(nghttp2_session *h2, const nghttp2_frame *frame, int code, void *ctx)
{
    Http2Session *session = ctx;
    if (frame->hd.type != NGHTTP2_HEADERS) {
        return 0;
    }
    Http2Exchange *exchange = exchange_of(h2, frame->hd.stream_id);
    session->draining |= code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED;
    if (exchange != NULL) {
        nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, NULL);
        end(exchange, HTTP2_END_REFUSED, NGHTTP2_REFUSED_STREAM);
    }
    return 0;
}

static nghttp2_nv field(Str name, Str value, uint8_t flags)
{
    // nghttp2 copies both, and does not write to them.
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.ptr,
        .value = (uint8_t *)(uintptr_t)value.ptr,
        .namelen = name.len,
        .valuelen = value.len,
        .flags = flags,
    };
}

static Str length_text(size_t len, char out[NUMBER_MAX])
{
    int digits = snprintf(out, NUMBER_MAX, "%zu", len);
    return str_of(out, (size_t)digits);
}

static size_t write_fields(
    const Http2Exchange *exchange, nghttp2_nv fields[REQUEST_FIELDS_MAX], char number[NUMBER_MAX])
{
    size_t count = 0;
    fields[count++] = field(STR(":method"), exchange->method, 0);
    fields[count++] = field(STR(":scheme"), STR("https"), 0);
    fields[count++] = field(STR(":authority"), exchange->authority, 0);
    // It may hold a device's token: kept out of the table that both sides have.
    fields[count++] = field(STR(":path"), exchange->path, NGHTTP2_NV_FLAG_NO_INDEX);
    fields[count++] = field(
        STR("content-length"), length_text(exchange->body.len, number), NGHTTP2_NV_FLAG_NO_INDEX);
    assert(exchange->header_count <= REQUEST_FIELDS_MAX - FIXED_FIELDS);
    for (size_t i = 0; i < exchange->header_count; i++) {
        fields[count++] = field(exchange->headers[i].name, exchange->headers[i].value, 0);
    }
    return count;
}

bool http2_session_start(Http2Session *session, Http2Exchange *exchange)
{
    nghttp2_nv fields[REQUEST_FIELDS_MAX];
    char number[NUMBER_MAX];
    size_t count = write_fields(exchange, fields, number);
    nghttp2_data_provider body = {.read_callback = on_body_wanted};
    bool has_body = exchange->body.len > 0;
    assert(http2_session_room(session) > 0);
    buf_init(&exchange->text, exchange->head_max);
    int32_t stream = -1;
    if (nghttp2_session_check_request_allowed(session->h2) != 0) {
        stream = nghttp2_submit_request(
            session->h2, NULL, fields, count, has_body ? &body : NULL, exchange);
    }
    if (stream < 0) { // GOAWAY, or the numbers of streams are used up
        session->draining = true;
        return false;
    }
    exchange->stream = stream;
    exchange->handed = !has_body;
    session->open++;
    list(session, exchange);
    return true;
}

void http2_session_abandon(Http2Exchange *exchange)
{
    Http2Session *session = exchange->session;
    nghttp2_session_set_stream_user_data(session->h2, exchange->stream, NULL);
    reset(session, exchange->stream);
    unlist(exchange);
}

// ---- bytes ----

static bool fail(Error *err, ssize_t code)
{
    return error_set(err, ERROR_TRANSIENT, "http/2: %s", nghttp2_strerror((int)code));
}

bool http2_session_feed(Http2Session *session, Str bytes, Error *err)
{
    ssize_t taken = nghttp2_session_mem_recv(session->h2, (const uint8_t *)bytes.ptr, bytes.len);
    return taken >= 0 || fail(err, taken);
}

bool http2_session_pull(Http2Session *session, Buf *wire, Error *err)
{
    size_t until = wire->len + PULL_BYTES;
    while (wire->len < until) {
        const uint8_t *bytes = NULL;
        ssize_t len = nghttp2_session_mem_send(session->h2, &bytes);
        if (len < 0) {
            return fail(err, len);
        }
        if (len == 0) {
            return true;
        }
        if (!buf_append(wire, bytes, (size_t)len)) {
            return error_set(err, ERROR_TRANSIENT, "http/2: more is to be sent than fits");
        }
    }
    return true;
}

// ---- what there is to know ----

size_t http2_session_room(const Http2Session *session)
{
    if (session->draining || !session->ready) {
        return 0;
    }
    uint32_t server =
        nghttp2_session_get_remote_settings(session->h2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    uint32_t most = session->proven ? session->streams_max : 1;
    most = server < most ? server : most;
    return session->open < most ? most - session->open : 0;
}

size_t http2_session_open(const Http2Session *session)
{
    return session->open;
}

Http2Exchange *http2_session_first(const Http2Session *session)
{
    return session->first;
}

bool http2_session_is_ready(const Http2Session *session)
{
    return session->ready;
}

bool http2_session_is_proven(const Http2Session *session)
{
    return session->proven;
}

bool http2_session_is_draining(const Http2Session *session)
{
    return session->draining;
}

bool http2_session_is_over(const Http2Session *session)
{
    return nghttp2_session_want_read(session->h2) == 0 &&
           nghttp2_session_want_write(session->h2) == 0;
}

const char *http2_session_goaway_text(const Http2Session *session)
{
    return session->goaway_text;
}

void http2_session_ping(Http2Session *session)
{
    nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE, NULL);
}

uint64_t http2_session_pongs(const Http2Session *session)
{
    return session->pongs;
}

void http2_session_leave(Http2Session *session)
{
    session->draining = true;
    nghttp2_submit_goaway(session->h2, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

void http2_exchange_done(Http2Exchange *exchange)
{
    buf_done(&exchange->text);
}

Str http2_exchange_field(const Http2Exchange *exchange, Str name)
{
    for (size_t i = 0; i < exchange->field_count; i++) {
        const char *text = exchange->text.ptr;
        if (str_eq_nocase(
                str_of(text + exchange->fields[i].name, exchange->fields[i].name_len), name)) {
            return str_of(text + exchange->fields[i].value, exchange->fields[i].value_len);
        }
    }
    return STR_EMPTY;
}

// ---- life ----

static nghttp2_session *new_h2(Http2Session *session)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *h2 = NULL;
    int failed = nghttp2_session_callbacks_new(&callbacks);
    failed |= nghttp2_option_new(&option);
    if (failed == 0) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
        nghttp2_option_set_no_closed_streams(option, 1);
        failed = nghttp2_session_client_new2(&h2, callbacks, session, option);
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return failed == 0 ? h2 : NULL;
}

Http2Session *http2_session_new(uint32_t streams_max, Error *err)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX},
    };
    Http2Session *session = xcalloc(1, sizeof *session);
    session->streams_max = streams_max;
    session->h2 = new_h2(session);
    if (session->h2 == NULL) {
        free(session);
        error_set(err, ERROR_TRANSIENT, "http/2: no memory for a session");
        return NULL;
    }
    nghttp2_submit_settings(
        session->h2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    nghttp2_session_set_local_window_size(session->h2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    return session;
}

void http2_session_free(Http2Session *session)
{
    if (session != NULL) {
        assert(session->first == NULL);
        nghttp2_session_del(session->h2);
        free(session);
    }
}
