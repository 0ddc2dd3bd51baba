// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/http_vendor.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "services/dispatcher/vendor/http/http_queue.h"

enum { TICK_MS = 200, ANSWER_HEADERS_MAX = 64 };

struct HttpVendor {
    HttpVendorOptions options;
    HttpQueue queue;
    unsigned running; // calls, probes included
    bool draining, closing, probing;
    uv_timer_t soon, tick;
    unsigned handles;
    int64_t down_since_us, reached_at_us;
    unsigned failures; // in a row
    char reason[HTTP_VENDOR_REASON_MAX];
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// One call; it and all that it points to is in its arena.
typedef struct Sending {
    HttpVendor *vendor;
    Mail *mail; // NULL: a probe
    Arena *arena;
    Buf body; // of the answer
    bool cut;
} Sending;

static void pump_soon(HttpVendor *vendor);

// uv_now() may be old when this process was stopped.
static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void answer(Mail *mail, SendState state, const char *text)
{
    SendResult result = {
        .state = state, .waited = true, .reply = REPLY_RETRY, .text = str_from(text)};
    mail->on_done(mail->ctx, mail, &result);
}

// ---- what the calls show of the vendor's reach ----

static void note_failure(HttpVendor *vendor, const char *text)
{
    if (vendor->failures++ == 0) {
        vendor->down_since_us = clock_now_us();
        LOG(LOG_WARN, "a vendor's API cannot be reached",
            log_text("vendor", vendor->options.api->name), log_text("reason", text));
    }
    (void)str_to_c(
        str_slice(str_from(text), 0, sizeof vendor->reason - 1), vendor->reason,
        sizeof vendor->reason);
}

static void note_reached(HttpVendor *vendor)
{
    if (vendor->failures > 0) {
        LOG(LOG_INFO, "a vendor's API can be reached again",
            log_text("vendor", vendor->options.api->name),
            log_int("seconds", (clock_now_us() - vendor->down_since_us) / 1000000));
    }
    vendor->failures = 0;
    vendor->down_since_us = 0;
    vendor->reached_at_us = clock_now_us();
}

// ---- the answer ----

static bool on_piece(void *ctx, HttpCall *call, const void *bytes, size_t len)
{
    (void)call;
    Sending *sending = ctx;
    size_t room = VENDOR_ANSWER_MAX - sending->body.len;
    sending->cut = len > room;
    buf_str(&sending->body, (Str){bytes, len < room ? len : room});
    return !sending->cut;
}

static VendorAnswer read_answer(Sending *sending, const HttpCall *call, const HttpAnswer *got)
{
    HttpAnswerHeader found[ANSWER_HEADERS_MAX];
    size_t count = http_call_headers(call, found, ANSWER_HEADERS_MAX);
    VendorPair *headers = arena_array(sending->arena, count + 1, sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        headers[i] = (VendorPair){found[i].name, found[i].value};
    }
    return (VendorAnswer){
        .status = got->status,
        .headers = headers,
        .header_count = count,
        .body = buf_view(&sending->body),
        .cut = sending->cut || got->stopped || got->outcome != HTTP_ANSWERED,
        .read_us = clock_now_us(),
    };
}

// An answer that was cut is judged by its status when that says whether the mail was taken.
static bool is_answer(const HttpAnswer *got)
{
    return got->outcome == HTTP_ANSWERED ||
           (http_certainty(got) == HTTP_SURELY_ANSWERED && got->status < 500);
}

// Whether the vendor took a mail whose answer never came.
static SendResult judge_asked(Sending *sending, const HttpCall *call, const HttpAnswer *got)
{
    SendResult result = {.state = SEND_UNKNOWN, .text = str_from(got->err.text)};
    VendorAnswer whole = read_answer(sending, call, got);
    int found = got->outcome == HTTP_ANSWERED
                    ? sending->vendor->options.api->asked(
                          &whole, sending->mail->content, sending->arena, &result)
                    : -1;
    if (got->err.kind == ERROR_CANCELLED) {
        result.state = SEND_RELEASED;
    } else if (found == 1) {
        result.state = SEND_ANSWERED;
        result.reply = REPLY_ACCEPTED;
    } else {
        result.state = found == 0 ? SEND_UNSENT : SEND_UNKNOWN;
        result.code = found == 0 ? STR("absent") : STR("unclear");
        result.text = found == 0 ? STR("the vendor was asked and never had it")
                                 : STR("the vendor was asked and does not say whether it had it");
    }
    return result;
}

static SendResult judge(Sending *sending, const HttpCall *call, const HttpAnswer *got)
{
    if (sending->mail->asks) {
        return judge_asked(sending, call, got);
    }
    SendResult result = {
        .state = SEND_UNKNOWN, .reply = REPLY_RETRY, .text = str_from(got->err.text)};
    if (is_answer(got)) {
        VendorAnswer whole = read_answer(sending, call, got);
        sending->vendor->options.api->read(&whole, sending->arena, &result);
        if (result.code.len == 0) {
            result.code = str_from(arena_printf(sending->arena, "%d", got->status));
        }
    } else if (got->failure == HTTP_FAILURE_BLOCKED) {
        // Its URL leads where no credential is sent, which is the credential's fault.
        result.state = SEND_ANSWERED;
        result.waited = true;
        result.reply = REPLY_CONFIG;
        result.code = STR("credential");
        result.text = str_from(
            arena_printf(sending->arena, "setting 'base_url' is refused: %s", got->err.text));
    } else if (http_certainty(got) == HTTP_SURELY_UNSENT) {
        bool stopped = got->err.kind == ERROR_CANCELLED;
        result.state = stopped ? SEND_RELEASED : SEND_UNSENT;
    }
    return result;
}

static void note_tested(Sending *sending, const HttpCall *call, const HttpAnswer *got)
{
    const HttpVendorOptions *options = &sending->vendor->options;
    VendorQuota quota = {0};
    sending->vendor->probing = false;
    if (options->on_quota == NULL || options->api->quota == NULL || got->outcome != HTTP_ANSWERED) {
        return;
    }
    VendorAnswer whole = read_answer(sending, call, got);
    if (options->api->quota(&whole, sending->arena, &quota)) {
        options->on_quota(options->ctx, &quota);
    }
}

static void finish(Sending *sending)
{
    HttpVendor *vendor = sending->vendor;
    buf_done(&sending->body);
    arena_free(sending->arena);
    vendor->running--;
    pump_soon(vendor);
}

static void on_call_done(void *ctx, HttpCall *call, const HttpAnswer *got)
{
    Sending *sending = ctx;
    HttpVendor *vendor = sending->vendor;
    CRASH_POINT_IF("http.answered", sending->mail != NULL && got->outcome == HTTP_ANSWERED);
    if (got->status > 0) {
        note_reached(vendor);
    } else if (got->err.kind != ERROR_CANCELLED) {
        note_failure(vendor, got->err.text);
    }
    if (sending->mail != NULL) {
        SendResult result = judge(sending, call, got);
        sending->mail->on_done(sending->mail->ctx, sending->mail, &result);
    } else {
        note_tested(sending, call, got);
    }
    finish(sending);
}

// ---- the request ----

static bool check_request(const VendorRequest *request, Error *err)
{
    if (request->url.len == 0 || request->url.len > HTTP_URL_MAX || str_has_control(request->url)) {
        return error_set(err, ERROR_CONFIG, "the URL is empty, too long or has control characters");
    }
    for (size_t i = 0; i < request->header_count; i++) {
        if (str_has_control(request->headers[i].value)) {
            return error_set(
                err, ERROR_PERMANENT, "header '" STR_FMT "' has control characters",
                STR_ARG(request->headers[i].name));
        }
    }
    return true;
}

static bool make_request(Sending *sending, VendorRequest *ret, Error *err)
{
    const HttpVendorOptions *options = &sending->vendor->options;
    VendorAccount account = {0};
    int64_t now_us = clock_now_us();
    if (!options->account(options->ctx, &account, err)) {
        return false;
    }
    const VendorApi *api = options->api;
    const Mail *mail = sending->mail;
    Arena *arena = sending->arena;
    bool made = mail == NULL ? api->test(&account, now_us, arena, ret, err)
                : mail->asks ? api->ask(mail->content, &account, now_us, arena, ret, err)
                             : api->build(mail->content, &account, now_us, arena, ret, err);
    return made && check_request(ret, err);
}

static void call(Sending *sending, const VendorRequest *request)
{
    const HttpVendorOptions *own = &sending->vendor->options;
    HttpCallOptions options = {
        .method = request->method,
        .url = arena_cstr(sending->arena, request->url),
        .body = request->body.ptr,
        .body_len = request->body.len,
        .fd = -1,
        .connect_ms = own->connect_ms,
        .idle_ms = own->whole_ms,
        .whole_ms = own->whole_ms,
        .lane = sending->mail != NULL ? (int)sending->mail->lane - PRIORITY_CRITICAL : 0,
        .on_piece = on_piece,
        .on_done = on_call_done,
        .ctx = sending,
    };
    // Its body must not be written after the claim has ended, and is written as soon as there is a
    // connection.
    uint64_t now = clock_ms();
    if (sending->mail != NULL && sending->mail->held_until_ms < now + (uint64_t)own->connect_ms) {
        options.connect_ms = (int64_t)(sending->mail->held_until_ms - now);
    }
    for (size_t i = 0; i < request->header_count && i < VENDOR_HEADERS_MAX; i++) {
        options.headers[i] = (HttpCallHeader){
            arena_cstr(sending->arena, request->headers[i].name),
            arena_cstr(sending->arena, request->headers[i].value)};
    }
    (void)http_call(own->client, &options);
}

static Sending *sending_new(HttpVendor *vendor, Mail *mail)
{
    Arena *arena = arena_new(0);
    Sending *sending = arena_zalloc(arena, sizeof *sending);
    *sending = (Sending){.vendor = vendor, .mail = mail, .arena = arena};
    buf_init(&sending->body, VENDOR_ANSWER_MAX);
    vendor->running++;
    return sending;
}

// No request can be made of it: nothing was sent. The credential's fault, or this vendor cannot
// carry the mail.
static void refuse(Sending *sending, const Error *err)
{
    bool ours = err->kind == ERROR_CONFIG;
    SendState state = err->kind == ERROR_TRANSIENT ? SEND_UNSENT : SEND_ANSWERED;
    SendResult result = {
        .state = sending->mail != NULL && sending->mail->asks ? SEND_UNKNOWN : state,
        .waited = true,
        .reply = ours ? REPLY_CONFIG : REPLY_ELSEWHERE,
        .code = ours ? STR("credential") : STR("request"),
        .text = str_from(err->text),
    };
    if (sending->mail != NULL) {
        sending->mail->on_done(sending->mail->ctx, sending->mail, &result);
    } else {
        sending->vendor->probing = false;
    }
    finish(sending);
}

static void start(Sending *sending)
{
    VendorRequest request = {0};
    Error err = {0};
    if (make_request(sending, &request, &err)) {
        call(sending, &request);
    } else {
        refuse(sending, &err);
    }
}

// ---- turns ----

static bool is_late(const Mail *mail)
{
    uint64_t now = clock_ms();
    return mail->give_up_at_ms <= now || mail->held_until_ms <= now;
}

static void drop_late(HttpVendor *vendor)
{
    Mail *mail;
    while ((mail = http_queue_pop_if(&vendor->queue, is_late)) != NULL) {
        answer(mail, SEND_UNSENT, "no call of the vendor's API was free in time");
    }
}

static void release_all(HttpVendor *vendor)
{
    Mail *mail;
    while ((mail = http_queue_pop(&vendor->queue)) != NULL) {
        answer(mail, SEND_RELEASED, "draining");
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    HttpVendor *vendor = handle->data;
    if (--vendor->handles == 0) {
        vendor->on_closed(vendor->closed_ctx);
        free(vendor);
    }
}

static void end_when_closed(HttpVendor *vendor)
{
    if (vendor->closing && vendor->running == 0 && !uv_is_closing((uv_handle_t *)&vendor->soon)) {
        uv_close((uv_handle_t *)&vendor->soon, on_handle_closed);
        uv_close((uv_handle_t *)&vendor->tick, on_handle_closed);
    }
}

static void on_soon_timer(uv_timer_t *timer);

// false: the limit of its credential is used up; the mail waits, and the others with it.
static bool may_start(HttpVendor *vendor, Mail *mail)
{
    const HttpVendorOptions *options = &vendor->options;
    int64_t at_us = 0;
    if (options->may_start == NULL ||
        options->may_start(options->ctx, mail->lane, vendor->queue.count + 1, &at_us)) {
        return true;
    }
    http_queue_push_front(&vendor->queue, mail);
    int64_t wait_ms = (at_us - clock_mono_us()) / 1000 + 1;
    uv_timer_start(&vendor->soon, on_soon_timer, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
    return false;
}

static void pump(HttpVendor *vendor)
{
    if (vendor->draining) {
        release_all(vendor);
        end_when_closed(vendor);
        return;
    }
    drop_late(vendor);
    Mail *mail;
    while (vendor->running < vendor->options.calls &&
           (mail = http_queue_next(&vendor->queue, vendor->running, vendor->options.calls)) !=
               NULL) {
        if (!may_start(vendor, mail)) {
            break;
        }
        start(sending_new(vendor, mail));
    }
}

static void on_soon_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

static void pump_soon(HttpVendor *vendor)
{
    if (!uv_is_active((uv_handle_t *)&vendor->soon) &&
        !uv_is_closing((uv_handle_t *)&vendor->soon)) {
        uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
    }
}

static void on_tick_timer(uv_timer_t *timer)
{
    HttpVendor *vendor = timer->data;
    if (vendor->queue.count > 0 || vendor->closing) {
        pump(vendor);
    }
}

// ---- vendor.h ----

static void send_mail(void *self, Mail *mail)
{
    HttpVendor *vendor = self;
    http_queue_push(&vendor->queue, mail);
    if (mail->lane <= PRIORITY_HIGH) { // a part of the limit is kept for it
        uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
    } else {
        pump_soon(vendor);
    }
}

static void drain(void *self)
{
    HttpVendor *vendor = self;
    vendor->draining = true;
    uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
}

static VendorHealth health(void *self)
{
    const HttpVendor *vendor = self;
    return (VendorHealth){
        .down_since_us = vendor->down_since_us,
        .reached_at_us = vendor->reached_at_us,
        .waiting = vendor->queue.count,
        .reason = vendor->reason,
    };
}

// A call that proves the credential and sends nothing, where the vendor has one.
static void probe(void *self)
{
    HttpVendor *vendor = self;
    if (vendor->options.api->test != NULL && !vendor->probing && !vendor->draining) {
        vendor->probing = true;
        start(sending_new(vendor, NULL));
    }
}

Vendor http_vendor(HttpVendor *vendor)
{
    return (Vendor){
        .name = vendor->options.api->name,
        .self = vendor,
        .send = send_mail,
        .drain = drain,
        .health = health,
        .probe = probe};
}

// ---- start and stop ----

HttpVendor *http_vendor_new(const HttpVendorOptions *options)
{
    HttpVendor *vendor = xcalloc(1, sizeof *vendor);
    vendor->options = *options;
    vendor->handles = 2;
    uv_timer_init(options->loop, &vendor->soon);
    uv_timer_init(options->loop, &vendor->tick);
    vendor->soon.data = vendor;
    vendor->tick.data = vendor;
    uv_timer_start(&vendor->tick, on_tick_timer, TICK_MS, TICK_MS);
    return vendor;
}

size_t http_vendor_running(const HttpVendor *vendor)
{
    return vendor->running;
}

void http_vendor_close(HttpVendor *vendor, void (*on_closed)(void *ctx), void *ctx)
{
    vendor->on_closed = on_closed;
    vendor->closed_ctx = ctx;
    vendor->closing = true;
    drain(vendor);
}
