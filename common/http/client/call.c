// SPDX-License-Identifier: Apache-2.0
// One request: its options in libcurl's words, its body, its answer, its deadlines, its end.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/http/client/client_internal.h"

enum { CONNECT_MS = 5000, IDLE_MS = 30000, UP_BYTES = 256 * 1024, DOWN_BYTES = 64 * 1024 };

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

static size_t on_header_line(char *bytes, size_t size, size_t count, void *ctx)
{
    HttpCall *call = ctx;
    (void)bytes;
    call->last_at_ms = uv_now(call->client->loop);
    return size * count;
}

static size_t on_answer_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
    HttpCall *call = ctx;
    size_t len = size * count;
    call->last_at_ms = uv_now(call->client->loop);
    if (call->cancelled || call->on_piece == NULL || len == 0) {
        return len;
    }
    call->stopped = !call->on_piece(call->ctx, call, bytes, len);
    return call->stopped ? 0 : len;
}

int http_call_status(const HttpCall *call)
{
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

Str http_call_header(const HttpCall *call, const char *name)
{
    struct curl_header *header;
    CURLHcode code = curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &header);
    return code == CURLHE_OK ? str_from(header->value) : STR_EMPTY;
}

size_t http_call_headers(const HttpCall *call, HttpAnswerHeader *ret, size_t max)
{
    size_t count = 0;
    struct curl_header *header = NULL;
    while (count < max &&
           (header = curl_easy_nextheader(call->easy, CURLH_HEADER, -1, header)) != NULL) {
        ret[count++] = (HttpAnswerHeader){str_from(header->name), str_from(header->value)};
    }
    return count;
}

bool http_date_parse(Str text, int64_t *ret_us)
{
    char copy[64];
    time_t seconds = str_to_c(text, copy, sizeof copy) ? curl_getdate(copy, NULL) : -1;
    if (seconds < 0) {
        return false;
    }
    *ret_us = (int64_t)seconds * 1000000;
    return true;
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
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UP_BYTES);
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
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_body_wanted);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_body_again);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
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
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

bool call_prepare(HttpCall *call, const HttpCallOptions *options)
{
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->text);
    // Else libcurl ignores SIGPIPE around its work, as OpenSSL's writes need, and restores it.
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, call->client->pipe_ignored ? 1L : 0L);
    // A call that ends while its name is being resolved does not wait for the resolver's thread,
    // which would hold the loop until DNS gives up.
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->agent);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)DOWN_BYTES);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, call->client->kept_idle_s);
    long connect_ms = options->connect_ms > 0 ? (long)options->connect_ms : CONNECT_MS;
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    prepare_trust(call);
    prepare_method(call, options);
    prepare_headers(call, options);
    return curl_easy_setopt(easy, CURLOPT_URL, options->url) == CURLE_OK;
}

// ---- deadlines ----

static void on_call_timer(uv_timer_t *timer)
{
    HttpCall *call = timer->data;
    HttpClient *client = call->client;
    uint64_t now = uv_now(client->loop);
    if (call->cancelled) {
        call_end(call, CURLE_OK, ERROR_CANCELLED, "cancelled");
    } else if (call->ends_at_ms != 0 && now >= call->ends_at_ms) {
        call_end(call, CURLE_OK, ERROR_TRANSIENT, "it took longer than it may");
    } else if (call->running && now >= call->last_at_ms + (uint64_t)call->idle_ms) {
        call_end(call, CURLE_OK, ERROR_TRANSIENT, "nothing came or went for too long");
    } else {
        call_watch(call);
        return;
    }
    client_start_waiting(client);
}

void call_watch(HttpCall *call)
{
    uint64_t now = uv_now(call->client->loop);
    uint64_t at = call->running ? call->last_at_ms + (uint64_t)call->idle_ms : UINT64_MAX;
    if (call->ends_at_ms != 0 && call->ends_at_ms < at) {
        at = call->ends_at_ms;
    }
    if (at != UINT64_MAX && !call->cancelled) {
        uv_timer_start(&call->timer, on_call_timer, at > now ? at - now : 0, 0);
    }
}

// ---- life ----

HttpCall *http_call(HttpClient *client, const HttpCallOptions *options)
{
    assert(!client->closing && strlen(options->url) <= HTTP_URL_MAX);
    HttpCall *call = xcalloc(1, sizeof *call);
    call->client = client;
    call->easy = curl_easy_init();
    assert(call->easy != NULL);
    call->method = xstrdup(options->method);
    call->body = options->body;
    call->fd = options->fd;
    call->body_len = options->body_len;
    call->idle_ms = options->idle_ms > 0 ? options->idle_ms : IDLE_MS;
    call->on_piece = options->on_piece;
    call->on_done = options->on_done;
    call->ctx = options->ctx;
    uv_update_time(client->loop);
    call->ends_at_ms =
        options->whole_ms > 0 ? uv_now(client->loop) + (uint64_t)options->whole_ms : 0;
    uv_timer_init(client->loop, &call->timer);
    call->timer.data = call;
    client->handles++;
    bool prepared = call_prepare(call, options);
    assert(prepared); // only memory can fail here: the URL is read when the call begins
    (void)prepared;
    call->older = client->open;
    if (client->open != NULL) {
        client->open->newer = call;
    }
    client->open = call;
    *(client->last == NULL ? &client->first : &client->last->next) = call;
    client->last = call;
    call_watch(call);
    client_start_waiting(client);
    return call;
}

void http_call_cancel(HttpCall *call)
{
    call->cancelled = true;
    uv_timer_start(&call->timer, on_call_timer, 0, 0);
}

static void on_call_closed(uv_handle_t *handle)
{
    HttpCall *call = handle->data;
    HttpClient *client = call->client;
    free(call->method);
    free(call);
    client_handle_closed(client);
}

static ErrorKind kind_of(CURLcode code, const HttpCall *call)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return ERROR_CONFIG;
    default:
        return call->body_failed ? ERROR_PERMANENT : ERROR_TRANSIENT;
    }
}

static const char *text_of(CURLcode code, const HttpCall *call)
{
    if (call->body_failed) {
        return "the file of the body ended, or cannot be read";
    }
    if (code == CURLE_SEND_FAIL_REWIND) {
        return "the connection ended without an answer";
    }
    return call->text[0] != '\0' ? call->text : curl_easy_strerror(code);
}

// Bytes of headers that went out, or of the body that libcurl took.
static bool was_sent(const HttpCall *call)
{
    long head = 0;
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &head);
    return head > 0 || call->handed > 0;
}

void call_end(HttpCall *call, CURLcode code, ErrorKind kind, const char *why)
{
    HttpAnswer answer = {.status = http_call_status(call), .stopped = call->stopped};
    bool failed = kind != ERROR_NONE || (code != CURLE_OK && !call->stopped);
    if (failed) {
        answer.outcome = was_sent(call) ? HTTP_UNKNOWN : HTTP_NEVER_SENT;
        error_set(
            &answer.err, kind != ERROR_NONE ? kind : kind_of(code, call), "%s",
            why != NULL ? why : text_of(code, call));
    }
    HttpClient *client = call->client;
    call->on_done(call->ctx, call, &answer);
    client_forget(client, call);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    uv_close((uv_handle_t *)&call->timer, on_call_closed);
}
