// SPDX-License-Identifier: Apache-2.0
// A call from its beginning to its end: as many requests as its patience allows, and what each
// answer makes of it.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/storage/s3_internal.h"

enum { BACK_OFF_MS = 100, BACK_OFF_MAX_MS = 10000, ERROR_BODY_MAX = 16 * 1024, KEY_MAX = 4096 };

// ---- life ----

S3Call *s3_call_begin(S3 *s3, S3Verb verb, Str key, StorageDone on_done, void *ctx)
{
    assert(!s3->closing);
    S3Call *call = xcalloc(1, sizeof *call);
    call->s3 = s3;
    call->verb = verb;
    call->key = key;
    call->on_done = on_done;
    call->ctx = ctx;
    buf_init(&call->body, verb == S3_LIST ? S3_PAGE_MAX : ERROR_BODY_MAX);
    buf_init(&call->last_key, KEY_MAX);
    s3_page_init(&call->page);
    uv_timer_init(s3->loop, &call->timer);
    call->timer.data = call;
    call->older = s3->open;
    if (s3->open != NULL) {
        s3->open->newer = call;
    }
    s3->open = call;
    s3->calls++;
    return call;
}

static void on_timer_closed(uv_handle_t *handle)
{
    S3Call *call = handle->data;
    S3 *s3 = call->s3;
    buf_done(&call->body);
    buf_done(&call->last_key);
    s3_page_done(&call->page);
    EVP_MD_CTX_free(call->digest);
    free(call);
    s3->calls--;
    s3_close_when_idle(s3);
}

void s3_call_end(S3Call *call, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    S3 *s3 = call->s3;
    *(call->newer != NULL ? &call->newer->older : &s3->open) = call->older;
    if (call->older != NULL) {
        call->older->newer = call->newer;
    }
    call->on_done(call->ctx, outcome, info, err);
    uv_close((uv_handle_t *)&call->timer, on_timer_closed);
}

void s3_call_fail(S3Call *call, const Error *err)
{
    s3_call_end(call, STORAGE_FAILED, NULL, err);
}

static void fail_cancelled(S3Call *call)
{
    Error err = {0};
    error_set(&err, ERROR_CANCELLED, "the storage is being closed");
    s3_call_fail(call, &err);
}

void s3_call_done(S3Call *call)
{
    bool has_info = call->verb != S3_LIST && call->verb != S3_DELETE;
    s3_call_end(call, STORAGE_DONE, has_info ? &call->info : NULL, NULL);
}

// ---- again ----

static void on_time(uv_timer_t *timer)
{
    S3Call *call = timer->data;
    if (call->cancelled) {
        fail_cancelled(call);
    } else {
        s3_call_attempt(call);
    }
}

void s3_call_cancel(S3Call *call)
{
    call->cancelled = true;
    if (call->http != NULL) {
        http_call_cancel(call->http);
    } else {
        uv_timer_start(&call->timer, on_time, 0, 0);
    }
}

// Half of it and a random half more, so that those who were refused together do not come together.
static uint64_t back_off_ms(unsigned attempts)
{
    uint64_t whole = (uint64_t)BACK_OFF_MS << (attempts < 7 ? attempts : 7);
    whole = whole < BACK_OFF_MAX_MS ? whole : BACK_OFF_MAX_MS;
    uint32_t random;
    random_bytes(&random, sizeof random);
    return whole / 2 + random % (whole / 2 + 1);
}

// Patience is for a call that gets nowhere: it begins with the first failure, and again with each
// part of an object that came since.
void s3_call_again(S3Call *call, const Error *why)
{
    int64_t now_us = clock_mono_us();
    if (call->failing_us == 0 || call->delivered > call->failed_at) {
        call->failing_us = now_us;
        call->failed_at = call->delivered;
        call->attempts = 1;
    }
    int64_t spent_ms = (now_us - call->failing_us) / 1000;
    if (spent_ms >= call->s3->url.patience_ms) {
        Error err = *why;
        err.kind = ERROR_TRANSIENT;
        error_wrap(&err, "%u attempts in %lld s", call->attempts, (long long)spent_ms / 1000);
        s3_call_fail(call, &err);
        return;
    }
    uv_timer_start(&call->timer, on_time, back_off_ms(call->attempts - 1), 0);
}

void s3_call_step(S3Call *call, S3Step step)
{
    call->step = step;
    s3_call_attempt(call);
}

// ---- answers ----

static void fine(S3Call *call)
{
    if (call->verb == S3_PUT) {
        s3_put_fine(call);
    } else if (call->verb == S3_LIST) {
        s3_list_fine(call);
    } else {
        s3_call_done(call);
    }
}

static void nothing(S3Call *call)
{
    if (call->verb == S3_PUT) {
        s3_put_nothing(call);
    } else {
        s3_call_end(call, call->verb == S3_DELETE ? STORAGE_DONE : STORAGE_ABSENT, NULL, NULL);
    }
}

static void condition_fails(S3Call *call, const Error *why)
{
    if (call->verb == S3_PUT) {
        s3_put_refused(call);
        return;
    }
    Error err = *why; // a GET that goes on where it was cut: it is another object now
    err.kind = ERROR_TRANSIENT;
    s3_call_fail(call, &err);
}

// Once: a clock that is off all the time is the operator's.
static void skewed(S3Call *call, const S3Verdict *verdict)
{
    if (call->skew_tried || verdict->skew_us == 0) {
        Error err = verdict->err;
        err.kind = ERROR_CONFIG;
        s3_call_fail(call, &err);
        return;
    }
    call->skew_tried = true;
    call->s3->skew_us = verdict->skew_us;
    s3_call_attempt(call);
}

static void judged(S3Call *call, const S3Verdict *verdict)
{
    call->maybe_stored |= call->step == S3_ACT && verdict->maybe_stored;
    switch (verdict->meaning) {
    case S3_FINE:
        fine(call);
        break;
    case S3_NOTHING:
        nothing(call);
        break;
    case S3_FAILS:
        condition_fails(call, &verdict->err);
        break;
    case S3_BEYOND:
        s3_call_done(call);
        break;
    case S3_AGAIN:
        s3_call_again(call, &verdict->err);
        break;
    case S3_SKEWED:
        skewed(call, verdict);
        break;
    case S3_REFUSED:
        s3_call_fail(call, &verdict->err);
        break;
    }
}

static void no_answer(S3Call *call, const HttpAnswer *answer)
{
    Error err = answer->err;
    call->maybe_stored |= call->step == S3_ACT && answer->outcome == HTTP_UNKNOWN;
    error_wrap(
        &err, "%s of '%s/" STR_FMT "'", s3_method(call), call->s3->url.host,
        STR_ARG(str_slice(call->key, 0, 60)));
    if (err.kind == ERROR_TRANSIENT) {
        s3_call_again(call, &err);
    } else {
        s3_call_fail(call, &err);
    }
}

// true: what came is not what was asked for, and the call has ended.
static bool fail_pieces(S3Call *call)
{
    Error err = {0};
    if (call->range_wrong) {
        error_set(
            &err, ERROR_CONFIG, "the server at '%s' answers another range than was asked for",
            call->s3->url.host);
    } else if (call->replaced) {
        error_set(&err, ERROR_TRANSIENT, "the object was replaced while it was read");
    } else {
        return false;
    }
    s3_call_fail(call, &err);
    return true;
}

static bool fills_info(const S3Call *call, int status)
{
    bool asked = call->verb == S3_HEAD || call->verb == S3_PUT;
    return asked && status >= 200 && status < 300 && call->step != S3_COMPARE_GET;
}

static void on_http_done(void *ctx, HttpCall *http, const HttpAnswer *answer)
{
    S3Call *call = ctx;
    call->http = NULL;
    if (call->cancelled) {
        fail_cancelled(call);
        return;
    }
    if (fail_pieces(call)) {
        return;
    }
    if (answer->outcome != HTTP_ANSWERED) {
        no_answer(call, answer);
        return;
    }
    if (fills_info(call, answer->status)) {
        s3_read_info(call->s3, http, answer->status, &call->info);
    }
    if (call->verb == S3_GET && call->delivered == 0) { // an empty one, or none
        s3_read_info(call->s3, http, answer->status == 416 ? 206 : answer->status, &call->info);
    }
    S3Verdict verdict = s3_judge(call, http, answer->status, clock_now_us());
    judged(call, &verdict);
}

// ---- pieces ----

// false: it is not what was asked for. A server that ignores ranges gives the object from its
// beginning.
static bool is_range_asked(const S3Call *call, const HttpCall *http)
{
    uint64_t first = 0, total;
    int status = http_call_status(http);
    if (status == 206 &&
        !s3_content_range(http_call_header(http, "content-range"), &first, &total)) {
        return false;
    }
    return first == call->offset + call->delivered;
}

// The first piece of an attempt. What follows what came before must be of the same object.
static bool begin_pieces(S3Call *call, const HttpCall *http)
{
    StorageInfo info;
    s3_read_info(call->s3, http, http_call_status(http), &info);
    call->range_seen = true;
    call->range_wrong = !is_range_asked(call, http);
    call->replaced = call->delivered > 0 && strcmp(info.etag, call->info.etag) != 0;
    call->info = call->delivered > 0 ? call->info : info;
    return !call->range_wrong && !call->replaced;
}

static bool on_object_piece(S3Call *call, HttpCall *http, const void *bytes, size_t len)
{
    if (!call->range_seen && !begin_pieces(call, http)) {
        return false;
    }
    if (call->len > 0 && len > call->len - call->delivered) {
        len = (size_t)(call->len - call->delivered);
    }
    call->delivered += len;
    bool more = call->on_piece(call->ctx, bytes, len);
    return more && (call->len == 0 || call->delivered < call->len);
}

static bool on_http_piece(void *ctx, HttpCall *http, const void *bytes, size_t len)
{
    S3Call *call = ctx;
    int status = http_call_status(http);
    if (call->cancelled) {
        return false;
    }
    if (status >= 200 && status < 300 && call->verb == S3_GET) {
        return on_object_piece(call, http, bytes, len);
    }
    if (status >= 200 && status < 300 && call->step == S3_COMPARE_GET) {
        return EVP_DigestUpdate(call->digest, bytes, len) == 1;
    }
    (void)buf_append(&call->body, bytes, len); // of an error what fits; a page that does not is cut
    return true;
}

void s3_call_attempt(S3Call *call)
{
    call->attempts++;
    call->range_seen = call->range_wrong = call->replaced = false;
    buf_clear(&call->body);
    if (call->step == S3_COMPARE_GET) {
        call->digest = call->digest != NULL ? call->digest : EVP_MD_CTX_new();
        bool begun =
            call->digest != NULL && EVP_DigestInit_ex(call->digest, EVP_sha256(), NULL) == 1;
        assert(begun);
        (void)begun;
    }
    call->http = s3_send(call, on_http_piece, on_http_done);
}
