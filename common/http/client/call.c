// SPDX-License-Identifier: Apache-2.0
// One request: its options in libcurl's words, its body, its answer, its deadlines, its end.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/http/client/client_internal.h"

enum {
    CONNECT_MS = 5000,
    IDLE_MS = 30000,
    UP_BYTES = 256 * 1024,
    DOWN_BYTES = 64 * 1024,
    // With a guard:
    GUARDED_CONNECT_MS = 3000,
    GUARDED_TLS_MS = 5000,
    VENDOR_WHOLE_MS = 10000,
    TENANT_WHOLE_MS = 15000,
    HEAD_MAX = 16 * 1024,
    ANSWER_MAX = 64 * 1024,
    UP_BYTES_GUARDED = 64 * 1024,
};

// ---- the body ----

static ssize_t read_file(const HttpCall *call, char *to, size_t len)
{
    return pread(call->fd, to, len, (off_t)call->handed);
}

static size_t on_body_wanted(char *to, size_t size, size_t count, void *ctx)
{
    HttpCall *call = ctx;
    uint64_t left = call->body_len - call->handed;
    size_t len = left < size * count ? (size_t)left : size * count;
    ssize_t got = (ssize_t)len;
    if (len > 0 && call->body != NULL) {
        memcpy(to, call->body + call->handed, len);
    } else if (len > 0) {
        got = read_file(call, to, len);
    }
    if (got < 0 || (got == 0 && len > 0)) {
        call->body_failed = true;
        return CURL_READFUNC_ABORT;
    }
    call->handed += (uint64_t)got;
    call->last_at_ms = uv_now(call->client->loop);
    return (size_t)got;
}

// libcurl asks for the beginning when it means to send a request a second time by itself.
static int on_body_again(void *ctx, curl_off_t offset, int origin)
{
    (void)ctx;
    (void)offset;
    (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

// ---- the answer ----

// Each line of each head, those of 1xx too; trailers of chunks come as lines as well.
static size_t on_header_line(char *bytes, size_t size, size_t count, void *ctx)
{
    HttpCall *call = ctx;
    size_t len = size * count;
    call->last_at_ms = uv_now(call->client->loop);
    call->head_bytes += len;
    if (call->head_max > 0 && call->head_bytes > call->head_max) {
        call->head_too_long = true;
        return 0;
    }
    bool is_end = len <= 2 && (bytes[0] == '\r' || bytes[0] == '\n');
    call->head_whole |= is_end && http_call_status(call) >= 200;
    return len;
}

static size_t on_answer_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
    HttpCall *call = ctx;
    size_t len = size * count;
    call->last_at_ms = uv_now(call->client->loop);
    uint64_t room = call->answer_max > 0 ? call->answer_max - call->answer_bytes : UINT64_MAX;
    size_t taken = len < room ? len : (size_t)room;
    call->answer_bytes += taken;
    if (!call->cancelled && call->on_piece != NULL && taken > 0) {
        call->stopped = !call->on_piece(call->ctx, call, bytes, taken);
    }
    call->stopped |= taken < len;
    return call->stopped ? 0 : len;
}

int http_call_status(const HttpCall *call)
{
    long status = 0;
    if (call->begun) {
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    }
    return (int)status;
}

Str http_call_header(const HttpCall *call, const char *name)
{
    if (!call->begun) {
        return STR_EMPTY;
    }
    struct curl_header *header;
    CURLHcode code = curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &header);
    return code == CURLHE_OK ? str_from(header->value) : STR_EMPTY;
}

size_t http_call_headers(const HttpCall *call, HttpAnswerHeader *ret, size_t max)
{
    size_t count = 0;
    struct curl_header *header = NULL;
    while (count < max && call->begun &&
           (header = curl_easy_nextheader(call->easy, CURLH_HEADER, -1, header)) != NULL) {
        ret[count++] = (HttpAnswerHeader){str_from(header->name), str_from(header->value)};
    }
    return count;
}

#define YEAR_10000_S INT64_C(253402300800)

bool http_date_parse(Str text, int64_t *ret_us)
{
    char copy[64];
    time_t seconds = str_to_c(text, copy, sizeof copy) ? curl_getdate(copy, NULL) : -1;
    if (seconds < 0 || seconds >= YEAR_10000_S) { // libcurl reads "26 Nov 406026" as well
        return false;
    }
    *ret_us = (int64_t)seconds * 1000000;
    return true;
}

uint32_t http_retry_after_ms(Str text, int64_t now_us)
{
    enum { MOST_S = 86400 };
    int64_t seconds = 0, at_us = 0, wait_ms = 0;
    if (str_to_i64(str_trim(text), &seconds)) {
        wait_ms = seconds < 0 ? 0 : (seconds < MOST_S ? seconds : MOST_S) * 1000;
    } else if (http_date_parse(text, &at_us)) {
        wait_ms = (at_us - now_us) / 1000;
    }
    wait_ms = wait_ms < MOST_S * INT64_C(1000) ? wait_ms : MOST_S * INT64_C(1000);
    return wait_ms > 0 ? (uint32_t)wait_ms : 0;
}

// ---- options ----

// "Name: value"; libcurl sends "Name;" as a header without a value.
static void add_header(HttpCall *call, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + sizeof ": ";
    char *line = xmalloc(size);
    const char *between = value[0] == '\0' ? ";" : ": ";
    size_t at = strlen(name);
    memcpy(line, name, at);
    memcpy(line + at, between, strlen(between));
    memcpy(line + at + strlen(between), value, strlen(value) + 1);
    assert(!str_has_control(str_from(line)));
    call->headers = curl_slist_append(call->headers, line);
    assert(call->headers != NULL);
    free(line);
}

static void prepare_headers(HttpCall *call, const HttpCallOptions *options)
{
    call->headers = curl_slist_append(NULL, "Expect:"); // none, else a large body waits a second
    assert(call->headers != NULL);
    for (size_t i = 0; i < HTTP_CALL_HEADERS_MAX && options->headers[i].name != NULL; i++) {
        add_header(call, options->headers[i].name, options->headers[i].value);
    }
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
}

static bool has_body(const HttpCallOptions *options)
{
    const char *method = options->method;
    return options->body_len > 0 || strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0 ||
           strcmp(method, "PATCH") == 0;
}

static void prepare_method(HttpCall *call, const HttpCallOptions *options)
{
    CURL *easy = call->easy;
    if (has_body(options)) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)options->body_len);
    } else if (strcmp(options->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    // An empty body cannot refuse to be read twice, so libcurl would send such a request again when
    // a kept connection ends. On a connection of its own it never does.
    bool may_act = strcmp(options->method, "POST") == 0 || strcmp(options->method, "PATCH") == 0;
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, may_act && options->body_len == 0 ? 1L : 0L);
}

static void prepare_trust(HttpCall *call)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    if (call->client->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, call->client->ca_file);
    }
    // Of certificates in a file libcurl keeps what it has read; of a folder beside it, as Debian
    // has, it reads the file again for each connection: 5 ms.
    if (call->client->ca_file != NULL || call->client->guarded) {
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

static void prepare_callbacks(HttpCall *call)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_body_wanted);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_body_again);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, route_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, client_close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, call->client);
}

void call_prepare_once(HttpCall *call)
{
    CURL *easy = call->easy;
    const HttpClient *client = call->client;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->text);
    curl_easy_setopt(easy, CURLOPT_SHARE, client->share);
    // Else libcurl ignores SIGPIPE around its work, as OpenSSL's writes need, and restores it.
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, client->pipe_ignored ? 1L : 0L);
    // A call that ends while its name is being resolved does not wait for the resolver's thread,
    // which would hold the loop until DNS gives up.
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, client->agent);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)DOWN_BYTES);
    long up = client->guarded ? (long)UP_BYTES_GUARDED : (long)UP_BYTES;
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, up);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, client->kept_idle_s);
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, client->life_s);
    prepare_callbacks(call);
    prepare_trust(call);
}

static int64_t or_default(const HttpCall *call, int64_t value, int64_t plain, int64_t guarded)
{
    return value > 0 ? value : call->client->guarded ? guarded : plain;
}

static void take_limits(HttpCall *call, const HttpCallOptions *options)
{
    bool tenant = call->client->guard.tenant;
    call->connect_ms = or_default(call, options->connect_ms, CONNECT_MS, GUARDED_CONNECT_MS);
    call->tls_ms = or_default(call, options->tls_ms, 0, GUARDED_TLS_MS);
    call->idle_ms = options->idle_ms > 0 ? options->idle_ms : IDLE_MS;
    call->head_max = (uint64_t)or_default(call, options->head_max, 0, HEAD_MAX);
    call->answer_max = (uint64_t)or_default(call, options->answer_max, 0, ANSWER_MAX);
    int64_t whole_ms =
        or_default(call, options->whole_ms, 0, tenant ? TENANT_WHOLE_MS : VENDOR_WHOLE_MS);
    call->ends_at_ms = whole_ms > 0 ? uv_now(call->client->loop) + (uint64_t)whole_ms : 0;
}

// Every option that one call has and another has not is set for each: the handle is one of before.
bool call_prepare(HttpCall *call, const HttpCallOptions *options)
{
    long connect_ms = (long)(call->connect_ms + call->tls_ms);
    curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    prepare_method(call, options);
    prepare_headers(call, options);
    return curl_easy_setopt(call->easy, CURLOPT_URL, options->url) == CURLE_OK;
}

// ---- deadlines ----

static bool is_connecting(const HttpCall *call)
{
    curl_off_t connected_us = 0;
    if (call->opened_at_ms == 0 || call->tls_ms == 0) {
        return false;
    }
    curl_easy_getinfo(call->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    return connected_us == 0;
}

// When it is over by itself; UINT64_MAX: never.
static uint64_t deadline_of(const HttpCall *call)
{
    if (call->cancelled || call->step == CALL_REFUSED) {
        return 0;
    }
    uint64_t at = call->ends_at_ms != 0 ? call->ends_at_ms : UINT64_MAX;
    uint64_t quiet = call->last_at_ms + (uint64_t)call->idle_ms;
    if (call->step == CALL_RUNNING && quiet < at) {
        at = quiet;
    }
    uint64_t connected = call->opened_at_ms + (uint64_t)call->connect_ms;
    return call->step == CALL_RUNNING && connected < at && is_connecting(call) ? connected : at;
}

static void on_call_timer(uv_timer_t *timer)
{
    HttpCall *call = timer->data;
    HttpClient *client = call->client;
    uint64_t now = uv_now(client->loop);
    if (now < deadline_of(call)) {
        call_watch(call);
        return;
    }
    if (call->cancelled) {
        call_end(call, CURLE_OK, ERROR_CANCELLED, "cancelled");
    } else if (call->step == CALL_REFUSED) {
        call_end(call, CURLE_OK, call->refused.kind, NULL);
    } else if (call->ends_at_ms != 0 && now >= call->ends_at_ms) {
        call_end(call, CURLE_OPERATION_TIMEDOUT, ERROR_TRANSIENT, "it took longer than it may");
    } else if (is_connecting(call)) {
        call_end(call, CURLE_OPERATION_TIMEDOUT, ERROR_TRANSIENT, "no connection in time");
    } else {
        const char *why = "nothing came or went for too long";
        call_end(call, CURLE_OPERATION_TIMEDOUT, ERROR_TRANSIENT, why);
    }
    client_start_waiting(client);
}

void call_watch(HttpCall *call)
{
    uint64_t now = uv_now(call->client->loop);
    uint64_t at = deadline_of(call);
    if (at != UINT64_MAX) {
        uv_timer_start(&call->timer, on_call_timer, at > now ? at - now : 0, 0);
    }
}

// ---- life ----

// What one call leaves behind for the next one in its place is its handle, its timer and its pin.
static void renew(HttpCall *call)
{
    HttpCall kept = *call;
    memset(call, 0, sizeof *call);
    call->client = kept.client;
    call->easy = kept.easy;
    call->pin = kept.pin;
    memcpy(call->pinned, kept.pinned, sizeof call->pinned);
    call->timer = kept.timer;
}

static void take_options(HttpCall *call, const HttpCallOptions *options)
{
    bool fits = str_to_c(str_from(options->method), call->method, sizeof call->method);
    assert(fits && options->lane >= 0 && options->lane < HTTP_CALL_LANES);
    (void)fits;
    call->lane = options->lane;
    call->body = options->body;
    call->fd = options->fd;
    call->body_len = options->body_len;
    call->on_piece = options->on_piece;
    call->on_done = options->on_done;
    call->ctx = options->ctx;
}

HttpCall *http_call(HttpClient *client, const HttpCallOptions *options)
{
    assert(!client->closing && strlen(options->url) <= HTTP_URL_MAX);
    HttpCall *call = pool_take(client);
    uv_update_time(client->loop);
    take_options(call, options);
    take_limits(call, options);
    bool prepared = call_prepare(call, options);
    assert(prepared); // only memory can fail here: the URL is read when the call begins
    (void)prepared;
    call->older = client->open;
    if (client->open != NULL) {
        client->open->newer = call;
    }
    client->open = call;
    route_call(call, options->url);
    client_start_waiting(client);
    return call;
}

void http_call_cancel(HttpCall *call)
{
    call->cancelled = true;
    uv_timer_start(&call->timer, on_call_timer, 0, 0);
}

// ---- the end ----

// Bytes of headers that went out, or of the body that libcurl took.
static bool was_sent(const HttpCall *call)
{
    long head = 0;
    if (call->begun) {
        curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &head);
    }
    return head > 0 || call->handed > 0;
}

static ErrorKind kind_of(CURLcode code, const HttpCall *call)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return was_sent(call) ? ERROR_TRANSIENT : ERROR_CONFIG; // sent: the answer is no HTTP
    default:
        return call->body_failed ? ERROR_PERMANENT : ERROR_TRANSIENT;
    }
}

static HttpFailure failure_of(CURLcode code, const HttpCall *call)
{
    if (call->blocked) {
        return HTTP_FAILURE_BLOCKED;
    }
    if (call->step == CALL_REFUSED) {
        return HTTP_FAILURE_DNS;
    }
    if (call->head_too_long) {
        return HTTP_FAILURE_INVALID;
    }
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return HTTP_FAILURE_DNS;
    case CURLE_COULDNT_CONNECT:
        return HTTP_FAILURE_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return HTTP_FAILURE_TLS;
    case CURLE_OPERATION_TIMEDOUT:
        return HTTP_FAILURE_TIMEOUT;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_FAIL_REWIND:
        return HTTP_FAILURE_CUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return was_sent(call) ? HTTP_FAILURE_INVALID : HTTP_FAILURE_OTHER;
    default:
        return HTTP_FAILURE_OTHER;
    }
}

const char *http_failure_name(HttpFailure failure)
{
    switch (failure) {
    case HTTP_FAILURE_NONE:
        return "";
    case HTTP_FAILURE_BLOCKED:
        return "blocked";
    case HTTP_FAILURE_DNS:
        return "dns";
    case HTTP_FAILURE_CONNECT:
        return "connect";
    case HTTP_FAILURE_TLS:
        return "tls";
    case HTTP_FAILURE_TIMEOUT:
        return "timeout";
    case HTTP_FAILURE_CUT:
        return "cut";
    case HTTP_FAILURE_INVALID:
        return "invalid";
    case HTTP_FAILURE_OTHER:
        return "other";
    }
    return "";
}

static const char *text_of(CURLcode code, const HttpCall *call)
{
    if (call->refused.kind != ERROR_NONE) {
        return call->refused.text;
    }
    if (call->body_failed) {
        return "the file of the body ended, or cannot be read";
    }
    if (call->head_too_long) {
        return "the answer's headers are too long";
    }
    if (code == CURLE_SEND_FAIL_REWIND) {
        return "the connection ended without an answer";
    }
    return call->text[0] != '\0' ? call->text : curl_easy_strerror(code);
}

static void explain(HttpCall *call, CURLcode code, ErrorKind kind, const char *why, HttpAnswer *ret)
{
    ErrorKind known = call->refused.kind != ERROR_NONE ? call->refused.kind : kind_of(code, call);
    ret->outcome = was_sent(call) ? HTTP_UNKNOWN : HTTP_NEVER_SENT;
    ret->failure = kind == ERROR_CANCELLED ? HTTP_FAILURE_OTHER : failure_of(code, call);
    error_set(
        &ret->err, kind != ERROR_NONE ? kind : known, "%s",
        why != NULL ? why : text_of(code, call));
    if (ret->outcome == HTTP_NEVER_SENT && call->step == CALL_RUNNING && !call->blocked) {
        route_failed(call);
    }
}

void call_end(HttpCall *call, CURLcode code, ErrorKind kind, const char *why)
{
    HttpClient *client = call->client;
    if (code == CURLE_OK && kind == ERROR_NONE && !call->head_whole) {
        code = CURLE_PARTIAL_FILE; // libcurl takes a head that was cut for an answer
        why = "the connection ended in the answer's head";
    }
    HttpAnswer answer = {
        .status = http_call_status(call),
        .stopped = call->stopped,
        .head = call->head_whole,
        .handed = was_sent(call) && call->handed == call->body_len,
    };
    if (kind != ERROR_NONE || (code != CURLE_OK && !call->stopped)) {
        explain(call, code, kind, why, &answer);
    }
    call->on_done(call->ctx, call, &answer);
    client_forget(client, call);
    curl_slist_free_all(call->headers);
    renew(call);
    pool_give(call);
    client_close_if_idle(client);
}

HttpCertainty http_certainty(const HttpAnswer *answer)
{
    if (answer->outcome == HTTP_ANSWERED || answer->head) {
        return HTTP_SURELY_ANSWERED;
    }
    return answer->handed ? HTTP_UNCERTAIN : HTTP_SURELY_UNSENT;
}
