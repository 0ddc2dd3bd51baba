// SPDX-License-Identifier: Apache-2.0
// One call of a vendor's API: its request, and what its answer means.
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/vendor/generic/definition.h"
#include "services/dispatcher/vendor/http/http_internal.h"

// So often a mail that the server did nothing with is begun again on another connection.
enum { AGAIN_MAX = 5 };

// It and all that it points to is in its arena.
typedef struct Sending {
    HttpVendor *vendor;
    Mail *mail; // NULL: a probe
    Arena *arena;
    VendorRequest request;
    TransportCall call;
    AnswerBody body;
    Str bearer_key, bearer;       // what authorizes it
    VendorDefinition *definition; // as it was when the request was made; NULL: none
    const char *leads;            // what of the credential says where it goes; NULL: the address
} Sending;

// ---- the answer ----

bool answer_body_add(AnswerBody *body, Str bytes)
{
    size_t room = VENDOR_ANSWER_MAX - body->bytes.len;
    body->cut = bytes.len > room;
    buf_str(&body->bytes, str_slice(bytes, 0, bytes.len < room ? bytes.len : room));
    return !body->cut;
}

VendorAnswer answer_of(
    const AnswerBody *body, const HttpAnswer *got, const VendorPair *headers, size_t count)
{
    return (VendorAnswer){
        .status = got->status,
        .headers = headers,
        .header_count = count,
        .body = buf_view(&body->bytes),
        .cut = body->cut || got->stopped || got->outcome != HTTP_ANSWERED,
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
static SendResult judge_asked(Sending *sending, const VendorAnswer *whole, const HttpAnswer *got)
{
    SendResult result = {.state = SEND_UNKNOWN, .text = str_from(got->err.text)};
    int found = got->outcome == HTTP_ANSWERED
                    ? sending->vendor->options.api->asked(
                          whole, sending->mail->content, sending->arena, &result)
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

// The host of a vendor by definition is the credential's, also where the address is the URL. An
// endpoint's is the address's, unless a setting stands in its place.
static const char *what_leads(const Sending *sending, const VendorAccount *account)
{
    const VendorApi *api = sending->vendor->options.api;
    const VendorDefinition *definition = account->definition;
    if (definition != NULL && definition_origin(definition).len == 0) {
        return "setting 'address_prefix'";
    }
    if (api->base_url != NULL && vendor_setting(account, STR("base_url")).len > 0) {
        return "setting 'base_url'";
    }
    return api->by_definition                       ? "'request.url' of the definition"
           : api->endpoint || api->base_url == NULL ? NULL
                                                    : "the vendor's URL";
}

// The URL leads where no request is sent: that of the credential is its fault, one that came with
// the address is the address's, and no other vendor gets it.
static void judge_blocked(Sending *sending, const HttpAnswer *got, SendResult *ret)
{
    bool own = sending->leads != NULL;
    ret->state = SEND_ANSWERED;
    ret->waited = true;
    ret->reply = own ? REPLY_CONFIG : REPLY_TERMINAL;
    ret->code = own ? STR("credential") : STR("request");
    ret->text = str_from(arena_printf(
        sending->arena, "%s is refused: %s", own ? sending->leads : "the address's endpoint",
        got->err.text));
}

static SendResult judge(Sending *sending, const VendorAnswer *whole, const HttpAnswer *got)
{
    if (sending->mail->asks) {
        return judge_asked(sending, whole, got);
    }
    SendResult result = {
        .state = SEND_UNKNOWN, .reply = REPLY_RETRY, .text = str_from(got->err.text)};
    if (is_answer(got)) {
        sending->vendor->options.api->read(whole, sending->arena, &result);
        if (result.code.len == 0) {
            result.code = str_from(arena_printf(sending->arena, "%d", got->status));
        }
    } else if (got->failure == HTTP_FAILURE_BLOCKED) {
        judge_blocked(sending, got, &result);
    } else if (http_certainty(got) == HTTP_SURELY_UNSENT) {
        bool stopped = got->err.kind == ERROR_CANCELLED;
        result.state = stopped ? SEND_RELEASED : SEND_UNSENT;
    }
    return result;
}

static void note_tested(Sending *sending, const VendorAnswer *whole, const HttpAnswer *got)
{
    const HttpVendorOptions *options = &sending->vendor->options;
    VendorQuota quota = {0};
    sending->vendor->probing = false;
    if (options->on_quota != NULL && options->api->quota != NULL && got->outcome == HTTP_ANSWERED &&
        options->api->quota(whole, sending->arena, &quota)) {
        options->on_quota(options->ctx, &quota);
    }
}

// ---- again ----

// A connection that carries many calls ended, or its server takes no more on it (GOAWAY), and it
// did nothing with this one: no word about the vendor.
static bool is_left_behind(const Sending *sending, const HttpAnswer *got)
{
    return sending->mail != NULL && sending->vendor->options.transport.shares &&
           got->failure == HTTP_FAILURE_CUT && got->err.kind != ERROR_CANCELLED &&
           http_certainty(got) == HTTP_SURELY_UNSENT && sending->mail->tries < AGAIN_MAX;
}

// Only what authorized it was refused: with another one it is sent once more.
static bool is_stale(Sending *sending, const VendorAnswer *whole, const HttpAnswer *got)
{
    HttpVendor *vendor = sending->vendor;
    const VendorApi *api = vendor->options.api;
    if (sending->bearer.len == 0 || api->stale == NULL || got->outcome != HTTP_ANSWERED ||
        !api->stale(whole, sending->arena)) {
        return false;
    }
    bearers_drop(vendor->bearers, sending->bearer_key, sending->bearer);
    return sending->mail != NULL && !sending->mail->renewed;
}

// It waits for its turn again, in front of the others; a vendor that drains releases it.
static bool begin_again(Sending *sending, const VendorAnswer *whole, const HttpAnswer *got)
{
    Mail *mail = sending->mail;
    if (is_left_behind(sending, got)) {
        mail->tries++;
    } else if (is_stale(sending, whole, got)) {
        mail->renewed = true;
    } else {
        return false;
    }
    http_queue_push_front(&sending->vendor->queue, mail);
    return true;
}

// ---- the end ----

static void finish(Sending *sending)
{
    HttpVendor *vendor = sending->vendor;
    definition_drop(sending->definition);
    buf_done(&sending->body.bytes);
    arena_free(sending->arena);
    vendor->running--;
    http_vendor_pump_soon(vendor);
}

static bool on_piece(TransportCall *call, Str bytes)
{
    return answer_body_add(&((Sending *)call->ctx)->body, bytes);
}

static void on_done(
    TransportCall *call, const HttpAnswer *got, const VendorPair *headers, size_t count)
{
    Sending *sending = call->ctx;
    HttpVendor *vendor = sending->vendor;
    Mail *mail = sending->mail;
    CRASH_POINT_IF("http.answered", mail != NULL && got->outcome == HTTP_ANSWERED);
    VendorAnswer whole = answer_of(&sending->body, got, headers, count);
    whole.definition = sending->definition;
    bool again = begin_again(sending, &whole, got);
    if (got->status > 0) {
        http_vendor_note_reached(vendor);
    } else if (got->err.kind != ERROR_CANCELLED && !again) {
        http_vendor_note_failure(vendor, got->err.text);
    }
    if (mail == NULL) {
        note_tested(sending, &whole, got);
    } else if (!again) {
        SendResult result = judge(sending, &whole, got);
        mail->on_done(mail->ctx, mail, &result);
    }
    finish(sending);
}

// ---- the request ----

bool http_request_check(const VendorRequest *request, Error *err)
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

static bool build(Sending *sending, const VendorAccount *account, Error *err)
{
    const VendorApi *api = sending->vendor->options.api;
    const Mail *mail = sending->mail;
    Arena *arena = sending->arena;
    VendorRequest *ret = &sending->request;
    int64_t now_us = clock_now_us();
    bool made = mail == NULL ? api->test(account, now_us, arena, ret, err)
                : mail->asks ? api->ask(mail->content, account, now_us, arena, ret, err)
                             : api->build(mail->content, account, now_us, arena, ret, err);
    return made && http_request_check(ret, err);
}

// "https://host:port/path": the host; nothing of one that is too long.
static void note_server(Mail *mail, Str url)
{
    Str rest = url, part = STR_EMPTY, host = STR_EMPTY;
    if (str_split(&rest, '/', &part) && str_split(&rest, '/', &part) &&
        str_split(&rest, '/', &part) && str_split(&part, ':', &host)) {
        (void)str_to_c(host, mail->server, sizeof mail->server);
    }
}

static void hand_over(Sending *sending)
{
    const HttpVendorOptions *own = &sending->vendor->options;
    Mail *mail = sending->mail;
    if (mail != NULL) {
        note_server(mail, sending->request.url);
    }
    uint64_t now_ms = uv_hrtime() / 1000000;
    bool held = mail != NULL && mail->held_until_ms > now_ms;
    sending->call = (TransportCall){
        .request = &sending->request,
        .arena = sending->arena,
        .lane = mail != NULL ? (int)mail->lane - PRIORITY_CRITICAL : 0,
        .connect_ms = own->connect_ms,
        .whole_ms = own->whole_ms,
        .held_ms = held ? (int64_t)(mail->held_until_ms - now_ms) : 0,
        .on_piece = on_piece,
        .on_done = on_done,
        .ctx = sending,
    };
    own->transport.call(&own->transport, &sending->call);
}

// No request can be made of it: nothing was sent. The credential's fault, or this vendor cannot
// carry the mail. A token that cannot be had says something about the vendor, too.
static void refuse(Sending *sending, bool unauthorized, const Error *err)
{
    bool ours = err->kind == ERROR_CONFIG;
    bool later = err->kind == ERROR_TRANSIENT || err->kind == ERROR_CANCELLED;
    SendState state = later ? SEND_UNSENT : SEND_ANSWERED;
    SendResult result = {
        .state = sending->mail != NULL && sending->mail->asks ? SEND_UNKNOWN : state,
        .waited = !unauthorized,
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

static Sending *sending_new(HttpVendor *vendor, Mail *mail)
{
    Arena *arena = arena_new(0);
    Sending *sending = arena_zalloc(arena, sizeof *sending);
    *sending = (Sending){.vendor = vendor, .mail = mail, .arena = arena};
    buf_init(&sending->body.bytes, VENDOR_ANSWER_MAX);
    vendor->running++;
    return sending;
}

// Nothing was done with it yet.
static void put_back(Sending *sending)
{
    HttpVendor *vendor = sending->vendor;
    if (sending->mail != NULL) {
        http_queue_push_front(&vendor->queue, sending->mail);
        vendor->waits = true;
    } else {
        vendor->probing = false;
    }
    definition_drop(sending->definition);
    buf_done(&sending->body.bytes);
    arena_free(sending->arena);
    vendor->running--;
}

bool http_call_start(HttpVendor *vendor, Mail *mail)
{
    Error err = {0};
    VendorAccount account = {0};
    Sending *sending = sending_new(vendor, mail);
    BearerStanding bearer = BEARER_HERE;
    if (!vendor->options.account(vendor->options.ctx, &account, &err)) {
        refuse(sending, false, &err);
        return true;
    }
    sending->definition = definition_hold(account.definition);
    sending->leads = what_leads(sending, &account);
    if (vendor->bearers != NULL) {
        bearer =
            http_bearer_find(vendor, mail, &account, sending->arena, &sending->bearer_key, &err);
        sending->bearer = account.bearer;
    }
    if (bearer == BEARER_COMING) {
        put_back(sending);
        return false;
    }
    if (bearer == BEARER_HERE && build(sending, &account, &err)) {
        hand_over(sending);
    } else {
        refuse(sending, bearer == BEARER_NONE, &err);
    }
    return true;
}
