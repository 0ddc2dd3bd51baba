// SPDX-License-Identifier: Apache-2.0
// What authorizes calls: a vendor over transports that a test answers by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/dispatcher/vendor/http/http_vendor.h"

enum { MAILS = 6, CALLS_MAX = 64 };

// A transport that keeps its calls.
typedef struct Line {
    TransportCall *calls[CALLS_MAX];
    size_t count;
} Line;

typedef struct Sent {
    Mail mail;
    VendorMail content;
    int answers;
    SendResult result;
    char text[256];
} Sent;

typedef struct World {
    uv_loop_t loop;
    Line line, grants; // of the API, and of the calls that ask for a token
    HttpVendor *vendor;
    Vendor api;
    const char *secret;
    Sent sent[MAILS];
    int signatures;
    bool bad_key, closed;
} World;

static World *world; // of the running test: a vendor's functions have no context

static void call_line(const Transport *transport, TransportCall *call)
{
    Line *line = transport->client;
    assert_true(line->count < CALLS_MAX);
    line->calls[line->count++] = call;
}

static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
}

static void answer(Line *line, size_t at, int status, const char *body)
{
    TransportCall *call = line->calls[at];
    HttpAnswer got = {.outcome = HTTP_ANSWERED, .status = status, .head = true, .handed = true};
    if (body[0] != '\0') {
        assert_true(call->on_piece(call, str_from(body)));
    }
    call->on_done(call, &got, NULL, 0);
    turn();
}

static void fail_call(Line *line, size_t at, HttpFailure failure, bool handed, ErrorKind kind)
{
    TransportCall *call = line->calls[at];
    HttpAnswer got = {
        .outcome = handed ? HTTP_UNKNOWN : HTTP_NEVER_SENT, .handed = handed, .failure = failure};
    error_set(&got.err, kind, "the connection ended");
    call->on_done(call, &got, NULL, 0);
    turn();
}

// ---- a vendor of this test's own ----

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    (void)err;
    assert_true(account->bearer.len > 0);
    *ret = (VendorRequest){
        .method = "POST",
        .url = STR("https://api.example/send"),
        .headers = {{STR("Authorization"), arena_str(arena, account->bearer)}},
        .header_count = 1,
        .body = mail->text};
    return true;
}

static void judge(const VendorAnswer *got, Arena *arena, SendResult *ret)
{
    (void)arena;
    ReplyClass reply = got->status == 200   ? REPLY_ACCEPTED
                       : got->status == 401 ? REPLY_CONFIG
                                            : REPLY_RETRY;
    *ret = (SendResult){.state = SEND_ANSWERED, .reply = reply, .text = STR("judged")};
}

static bool is_stale(const VendorAnswer *got, Arena *arena)
{
    (void)arena;
    return got->status == 401;
}

static bool grant(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (world->bad_key) {
        return error_set(err, ERROR_CONFIG, "the secret is no service account");
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = STR("https://oauth.example/token"),
        .body = arena_str(arena, account->secret)};
    return true;
}

static bool granted(const VendorAnswer *got, Arena *arena, VendorBearer *ret, Error *err)
{
    if (got->status != 200) {
        return error_set(
            err, got->status == 400 ? ERROR_CONFIG : ERROR_TRANSIENT, "no access token: %d",
            got->status);
    }
    *ret = (VendorBearer){
        .text = arena_str(arena, got->body),
        .refresh_us = got->read_us + INT64_C(3600000000),
        .expires_us = got->read_us + INT64_C(3600000000)};
    return true;
}

static bool sign(
    const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
    Error *err)
{
    world->signatures++;
    if (world->bad_key) {
        return error_set(err, ERROR_CONFIG, "the secret is no key");
    }
    *ret = (VendorBearer){
        .text = str_from(arena_printf(
            arena, STR_FMT " for " STR_FMT, STR_ARG(account->secret), STR_ARG(audience))),
        .refresh_us = now_us + INT64_C(3600000000),
        .expires_us = now_us + INT64_C(3600000000)};
    return true;
}

static Str audience_of(const VendorMail *mail, Arena *arena)
{
    return arena_str(arena, mail->to.address);
}

static const VendorApi asking = {
    .name = "asking",
    .channel = CHANNEL_PUSH,
    .base_url = "https://api.example",
    .build = build,
    .read = judge,
    .grant = grant,
    .granted = granted,
    .stale = is_stale};
static const VendorApi signing = {
    .name = "signing",
    .channel = CHANNEL_PUSH,
    .base_url = "https://api.example",
    .build = build,
    .read = judge,
    .sign = sign,
    .audience = audience_of,
    .stale = is_stale};

static bool account_of(void *ctx, VendorAccount *ret, Error *err)
{
    (void)ctx;
    (void)err;
    *ret = (VendorAccount){.name = STR("main"), .secret = str_from(world->secret)};
    return true;
}

// ---- stage ----

static void open_vendor(const VendorApi *api)
{
    world->vendor = http_vendor_new(&(HttpVendorOptions){
        .loop = &world->loop,
        .transport = {.client = &world->line, .call = call_line, .shares = true},
        .grants = {.client = &world->grants, .call = call_line},
        .api = api,
        .calls = 4,
        .connect_ms = 1000,
        .whole_ms = 1000,
        .account = account_of,
    });
    world->api = http_vendor(world->vendor);
}

static int up(void **state)
{
    world = xcalloc(1, sizeof *world);
    uv_loop_init(&world->loop);
    world->secret = "s1";
    *state = world;
    return 0;
}

static void on_closed(void *ctx)
{
    ((World *)ctx)->closed = true;
}

static int down(void **state)
{
    (void)state;
    http_vendor_close(world->vendor, on_closed, world);
    while (!world->closed) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void on_sent(void *ctx, Mail *mail, const SendResult *result)
{
    Sent *sent = ctx;
    assert_ptr_equal(&sent->mail, mail);
    sent->answers++;
    sent->result = *result;
    str_to_c(result->text, sent->text, sizeof sent->text);
}

static Sent *hand_over(int at, const char *to)
{
    Sent *sent = &world->sent[at];
    uint64_t now_ms = uv_hrtime() / 1000000;
    sent->content = (VendorMail){.to = {.address = str_from(to)}, .text = STR("Hello")};
    sent->mail = (Mail){
        .content = &sent->content,
        .lane = PRIORITY_NORMAL,
        .give_up_at_ms = now_ms + 20000,
        .held_until_ms = now_ms + 30000,
        .on_done = on_sent,
        .ctx = sent};
    world->api.send(world->api.self, &sent->mail);
    turn();
    return sent;
}

static void expect_bearer(size_t at, const char *bearer)
{
    assert_true(world->line.count > at);
    const VendorRequest *request = world->line.calls[at]->request;
    assert_true(str_eq(request->headers[0].value, str_from(bearer)));
}

// ---- tests ----

static void one_mail_asks_for_a_token_and_the_others_wait(void **state)
{
    (void)state;
    open_vendor(&asking);
    for (int i = 0; i < 3; i++) {
        hand_over(i, "a");
    }
    assert_int_equal(world->grants.count, 1);
    assert_int_equal(world->line.count, 0);
    answer(&world->grants, 0, 200, "t1");
    assert_int_equal(world->line.count, 3);
    for (size_t i = 0; i < 3; i++) {
        expect_bearer(i, "t1");
        answer(&world->line, i, 200, "");
        assert_int_equal(world->sent[i].answers, 1);
        assert_int_equal(world->sent[i].result.reply, REPLY_ACCEPTED);
    }
    assert_int_equal(world->grants.count, 1);
}

static void a_token_that_is_refused_is_the_credentials_fault(void **state)
{
    (void)state;
    open_vendor(&asking);
    const Sent *first = hand_over(0, "a");
    const Sent *second = hand_over(1, "a");
    answer(&world->grants, 0, 400, "invalid_grant");
    const Sent *later = hand_over(2, "a");
    const Sent *const all[] = {first, second, later};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i]->answers, 1);
        assert_int_equal(all[i]->result.state, SEND_ANSWERED);
        assert_int_equal(all[i]->result.reply, REPLY_CONFIG);
        assert_false(all[i]->result.waited); // it opens the breaker
        assert_string_equal(all[i]->text, "no access token: 400");
    }
    assert_int_equal(world->grants.count, 1); // it is not asked for with each mail
    assert_int_equal(world->line.count, 0);
    world->secret = "s2"; // mended
    hand_over(3, "a");
    assert_int_equal(world->grants.count, 2);
    answer(&world->grants, 1, 200, "t2");
    expect_bearer(0, "t2");
    answer(&world->line, 0, 200, "");
}

static void a_token_that_could_not_be_asked_for_leaves_the_mail_unsent(void **state)
{
    (void)state;
    open_vendor(&asking);
    const Sent *sent = hand_over(0, "a");
    fail_call(&world->grants, 0, HTTP_FAILURE_CONNECT, false, ERROR_TRANSIENT);
    assert_int_equal(sent->answers, 1);
    assert_int_equal(sent->result.state, SEND_UNSENT);
    assert_false(sent->result.waited);
    assert_true(world->api.health(world->api.self).down_since_us > 0);
}

static void a_secret_that_makes_no_request_is_the_credentials_fault(void **state)
{
    (void)state;
    open_vendor(&asking);
    world->bad_key = true;
    const Sent *sent = hand_over(0, "a");
    assert_int_equal(sent->result.reply, REPLY_CONFIG);
    assert_string_equal(sent->text, "the secret is no service account");
    assert_int_equal(world->grants.count, 0);
}

static void a_rotated_credential_is_used_at_once(void **state)
{
    (void)state;
    open_vendor(&asking);
    hand_over(0, "a");
    world->secret = "s2"; // while the token of the old one is on its way
    answer(&world->grants, 0, 200, "t1");
    assert_int_equal(world->line.count, 0); // what the old one was given is not handed out
    assert_int_equal(world->grants.count, 2);
    assert_true(str_eq(world->grants.calls[1]->request->body, STR("s2")));
    answer(&world->grants, 1, 200, "t2");
    expect_bearer(0, "t2");
    answer(&world->line, 0, 200, "");
}

static void a_token_that_the_old_secret_did_not_get_is_no_fault_of_the_new_one(void **state)
{
    (void)state;
    open_vendor(&asking);
    const Sent *sent = hand_over(0, "a");
    world->secret = "s2";
    hand_over(1, "a");
    answer(&world->grants, 0, 400, "invalid_grant");
    assert_int_equal(sent->answers, 0);
    assert_int_equal(world->grants.count, 2);
    answer(&world->grants, 1, 200, "t2");
    expect_bearer(0, "t2");
    answer(&world->line, 0, 200, "");
    answer(&world->line, 1, 200, "");
    assert_int_equal(sent->result.reply, REPLY_ACCEPTED);
}

static void a_stale_token_is_dropped_and_the_mail_sent_once_again(void **state)
{
    (void)state;
    open_vendor(&asking);
    const Sent *first = hand_over(0, "a");
    answer(&world->grants, 0, 200, "t1");
    const Sent *second = hand_over(1, "a");
    answer(&world->line, 0, 401, "");
    answer(&world->line, 1, 401, ""); // of the same token: there is one grant for both
    assert_int_equal(first->answers + second->answers, 0);
    assert_int_equal(world->grants.count, 2);
    answer(&world->grants, 1, 200, "t2");
    assert_int_equal(world->line.count, 4);
    expect_bearer(2, "t2");
    answer(&world->line, 2, 200, "");
    answer(&world->line, 3, 401, ""); // not the token's fault then
    assert_int_equal(first->answers + second->answers, 2);
    assert_int_equal(
        (int)(first->result.reply == REPLY_CONFIG) + (int)(second->result.reply == REPLY_CONFIG),
        1);
    assert_int_equal(world->line.count, 4);
}

static void a_token_is_signed_once_for_each_audience(void **state)
{
    (void)state;
    open_vendor(&signing);
    hand_over(0, "one");
    hand_over(1, "one");
    hand_over(2, "two");
    expect_bearer(0, "s1 for one");
    expect_bearer(1, "s1 for one");
    expect_bearer(2, "s1 for two");
    assert_int_equal(world->signatures, 2);
    for (size_t i = 0; i < 3; i++) {
        answer(&world->line, i, 200, "");
    }
}

static void a_key_that_does_not_sign_is_the_credentials_fault(void **state)
{
    (void)state;
    open_vendor(&signing);
    world->bad_key = true;
    const Sent *first = hand_over(0, "one");
    const Sent *second = hand_over(1, "one");
    assert_int_equal(first->result.reply, REPLY_CONFIG);
    assert_int_equal(second->result.reply, REPLY_CONFIG);
    assert_string_equal(second->text, "the secret is no key");
    assert_int_equal(world->signatures, 1);
}

static void what_a_connection_left_behind_is_begun_again(void **state)
{
    (void)state;
    open_vendor(&signing);
    const Sent *sent = hand_over(0, "one");
    fail_call(&world->line, 0, HTTP_FAILURE_CUT, false, ERROR_TRANSIENT);
    assert_int_equal(sent->answers, 0);
    assert_int_equal(world->line.count, 2);
    answer(&world->line, 1, 200, "");
    assert_int_equal(sent->result.reply, REPLY_ACCEPTED);
    assert_int_equal(world->api.health(world->api.self).down_since_us, 0);
}

static void what_is_left_behind_again_and_again_is_unsent(void **state)
{
    (void)state;
    open_vendor(&signing);
    const Sent *sent = hand_over(0, "one");
    size_t at = 0;
    for (; sent->answers == 0 && at < CALLS_MAX; at++) {
        fail_call(&world->line, at, HTTP_FAILURE_CUT, false, ERROR_TRANSIENT);
    }
    assert_int_equal(at, 6);
    assert_int_equal(sent->result.state, SEND_UNSENT);
    assert_true(world->api.health(world->api.self).down_since_us > 0);
}

static void what_may_have_reached_the_vendor_is_never_begun_again(void **state)
{
    (void)state;
    open_vendor(&signing);
    const Sent *sent = hand_over(0, "one");
    fail_call(&world->line, 0, HTTP_FAILURE_CUT, true, ERROR_TRANSIENT);
    assert_int_equal(sent->result.state, SEND_UNKNOWN);
    assert_int_equal(world->line.count, 1);
}

static void draining_releases_what_waits_for_a_token(void **state)
{
    (void)state;
    open_vendor(&asking);
    const Sent *sent = hand_over(0, "a");
    world->api.drain(world->api.self);
    turn();
    assert_int_equal(sent->answers, 1);
    assert_int_equal(sent->result.state, SEND_RELEASED);
    answer(&world->grants, 0, 200, "t1");
    assert_int_equal(world->line.count, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_mail_asks_for_a_token_and_the_others_wait),
        TEST(a_token_that_is_refused_is_the_credentials_fault),
        TEST(a_token_that_could_not_be_asked_for_leaves_the_mail_unsent),
        TEST(a_secret_that_makes_no_request_is_the_credentials_fault),
        TEST(a_rotated_credential_is_used_at_once),
        TEST(a_token_that_the_old_secret_did_not_get_is_no_fault_of_the_new_one),
        TEST(a_stale_token_is_dropped_and_the_mail_sent_once_again),
        TEST(a_token_is_signed_once_for_each_audience),
        TEST(a_key_that_does_not_sign_is_the_credentials_fault),
        TEST(what_a_connection_left_behind_is_begun_again),
        TEST(what_is_left_behind_again_and_again_is_unsent),
        TEST(what_may_have_reached_the_vendor_is_never_begun_again),
        TEST(draining_releases_what_waits_for_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
