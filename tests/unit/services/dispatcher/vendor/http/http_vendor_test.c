// SPDX-License-Identifier: Apache-2.0
// A vendor with an HTTP API against a server of plain sockets that counts what it saw.
#include "services/dispatcher/vendor/http/http_vendor.h"

#include <arpa/inet.h>

#include "common/vendor/generic/definition.h"
#include "services/dispatcher/vendor/http/http_queue.h"
#include "tests/unit/common/http/client/client_stage.h"

enum { MAILS = 12 };

typedef struct Sent {
    Mail mail;
    VendorMail content;
    int answers;
    SendState state;
    ReplyClass reply;
    char code[32], text[256], message_id[32];
} Sent;

typedef struct Vendors {
    Stage *net;
    HttpClient *client;
    HttpVendor *vendor;
    Vendor api;
    Sent sent[MAILS];
    char url[128];
    bool no_account, no_build, closed;
    unsigned most;                // calls at once
    VendorDefinition *definition; // of its account; NULL: none
    int refusals;                 // the credential's limit, as often
} Vendors;

// ---- a vendor of this test's own: the path of its URL says how the server behaves ----

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    assert_true(now_us > 0);
    if (str_eq(mail->subject, STR("too large"))) {
        return error_set(err, ERROR_PERMANENT, "'attachments' are too large for this vendor");
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = str_from(arena_printf(
            arena, STR_FMT STR_FMT, STR_ARG(vendor_setting(account, STR("base_url"))),
            STR_ARG(mail->subject))),
        .headers = {{STR("X-Token"), account->secret}, {STR("Idempotency-Key"), mail->key}},
        .header_count = 2,
        .body = arena_str(arena, mail->text),
    };
    return true;
}

static void judge(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    (void)arena;
    bool fine = answer->status == 200;
    *ret = (SendResult){
        .state = SEND_ANSWERED,
        .reply = fine ? REPLY_ACCEPTED : REPLY_RETRY,
        .text = answer->body,
        .vendor_message_id = vendor_answer_header(answer, STR("etag")),
    };
}

static bool test_call(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    (void)err;
    *ret = (VendorRequest){
        .method = "GET",
        .url = str_from(arena_printf(
            arena, STR_FMT "/account", STR_ARG(vendor_setting(account, STR("base_url")))))};
    return true;
}

static const VendorApi test_api = {
    .name = "testmail",
    .base_url = "https://api.example",
    .channel = CHANNEL_EMAIL,
    .build = build,
    .read = judge,
    .test = test_call,
};

// The URL is the address.
static const VendorApi endpoint_api = {
    .name = "testchat",
    .base_url = "https://hooks.example",
    .channel = CHANNEL_WEBHOOK,
    .build = build,
    .read = judge,
    .endpoint = true,
};

static const VendorApi definition_like = {
    .name = "definition",
    .base_url = "",
    .channel = CHANNEL_WEBHOOK,
    .build = build,
    .read = judge,
    .by_definition = true,
};

static bool account(void *ctx, VendorAccount *ret, Error *err)
{
    Vendors *vendors = ctx;
    static VendorPair settings[1];
    settings[0] = (VendorPair){STR("base_url"), str_from(vendors->url)};
    if (vendors->no_account) {
        return error_set(err, ERROR_CONFIG, "the file of credential 'main' is missing");
    }
    *ret = (VendorAccount){
        .name = STR("main"),
        .secret = STR("s3cret"),
        .settings = settings,
        .setting_count = 1,
        .definition = vendors->definition};
    return true;
}

static bool may_start(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us)
{
    Vendors *vendors = ctx;
    assert_true(lane == PRIORITY_NORMAL || lane == PRIORITY_CRITICAL);
    assert_true(waiting > 0);
    if (vendors->refusals == 0) {
        return true;
    }
    vendors->refusals--;
    *ret_at_us = clock_mono_us() + 20000;
    return false;
}

// ---- stage ----

static int up_as(void **state, const VendorApi *api)
{
    Vendors *vendors = xcalloc(1, sizeof *vendors);
    void *net = NULL;
    stage_up(&net);
    vendors->net = net;
    snprintf(vendors->url, sizeof vendors->url, "http://127.0.0.1:%d", vendors->net->port);
    Error err = {0};
    const HttpGuard guard = {.allow_loopback = true};
    vendors->client = http_client_new(
        &vendors->net->loop, &(HttpClientOptions){.calls = 2, .guard = &guard}, &err);
    assert_non_null(vendors->client);
    vendors->vendor = http_vendor_new(&(HttpVendorOptions){
        .loop = &vendors->net->loop,
        .transport = transport_http1(vendors->client),
        .api = api,
        .calls = 2,
        .connect_ms = 1000,
        .whole_ms = 300,
        .account = account,
        .may_start = may_start,
        .ctx = vendors,
    });
    vendors->api = http_vendor(vendors->vendor);
    *state = vendors;
    return 0;
}

static int up(void **state)
{
    return up_as(state, &test_api);
}

static int up_endpoint(void **state)
{
    return up_as(state, &endpoint_api);
}

static int up_definition(void **state)
{
    return up_as(state, &definition_like);
}

static void on_closed(void *ctx)
{
    ((Vendors *)ctx)->closed = true;
}

static int down(void **state)
{
    Vendors *vendors = *state;
    http_vendor_close(vendors->vendor, on_closed, vendors);
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (!vendors->closed && clock_mono_us() < deadline) {
        uv_run(&vendors->net->loop, UV_RUN_ONCE);
    }
    assert_true(vendors->closed);
    vendors->closed = false;
    http_client_free(vendors->client, on_closed, vendors);
    while (!vendors->closed && clock_mono_us() < deadline) {
        uv_run(&vendors->net->loop, UV_RUN_ONCE);
    }
    assert_true(vendors->closed);
    void *net = vendors->net;
    stage_down(&net);
    free(vendors);
    return 0;
}

static void on_sent(void *ctx, Mail *mail, const SendResult *result)
{
    Sent *sent = ctx;
    assert_ptr_equal(&sent->mail, mail);
    sent->answers++;
    sent->state = result->state;
    sent->reply = result->reply;
    str_to_c(result->code, sent->code, sizeof sent->code);
    str_to_c(result->text, sent->text, sizeof sent->text);
    str_to_c(result->vendor_message_id, sent->message_id, sizeof sent->message_id);
}

static Sent *hand_over(Vendors *vendors, int at, const char *path, Priority lane)
{
    Sent *sent = &vendors->sent[at];
    uint64_t now = uv_hrtime() / 1000000;
    sent->content = (VendorMail){
        .subject = str_from(path), .text = STR("Your order is on its way"), .key = STR("k-1")};
    sent->mail = (Mail){
        .content = &sent->content,
        .lane = lane,
        .give_up_at_ms = now + 4000,
        .held_until_ms = now + 5000,
        .on_done = on_sent,
        .ctx = sent,
    };
    vendors->api.send(vendors->api.self, &sent->mail);
    assert_int_equal(sent->answers, 0); // never inside send()
    return sent;
}

static void await_all(Vendors *vendors, int count)
{
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    int ended = 0;
    while (ended < count && clock_mono_us() < deadline) {
        uv_run(&vendors->net->loop, UV_RUN_ONCE);
        size_t running = http_vendor_running(vendors->vendor);
        vendors->most = running > vendors->most ? (unsigned)running : vendors->most;
        ended = 0;
        for (int i = 0; i < count; i++) {
            ended += vendors->sent[i].answers;
        }
    }
    assert_int_equal(ended, count);
}

static const Sent *send_one(Vendors *vendors, const char *path)
{
    const Sent *sent = hand_over(vendors, 0, path, PRIORITY_NORMAL);
    await_all(vendors, 1);
    return sent;
}

// ---- tests ----

static void an_accepted_mail_has_the_vendors_message_id(void **state)
{
    Vendors *vendors = *state;
    const Sent *sent = send_one(vendors, "/mail");
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, REPLY_ACCEPTED);
    assert_string_equal(sent->code, "200");
    assert_string_equal(sent->message_id, "\"abc\"");
    assert_non_null(strstr(vendors->net->last, "POST /mail HTTP/1.1\r\n"));
    assert_non_null(strstr(vendors->net->last, "X-Token: s3cret\r\n"));
    assert_non_null(strstr(vendors->net->last, "Idempotency-Key: k-1\r\n"));
    assert_string_equal(buf_c(&vendors->net->all), "Your order is on its way");
    VendorHealth health = vendors->api.health(vendors->api.self);
    assert_int_equal(health.down_since_us, 0);
    assert_true(health.reached_at_us > 0);
}

static void a_refusal_is_judged_by_the_vendors_own_reader(void **state)
{
    const Sent *sent = send_one(*state, "/moved");
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, REPLY_RETRY);
    assert_string_equal(sent->code, "302");
}

static void a_vendor_that_refuses_connections_has_not_got_the_mail(void **state)
{
    Vendors *vendors = *state;
    snprintf(vendors->url, sizeof vendors->url, "http://127.0.0.1:1");
    assert_int_equal(send_one(vendors, "/mail")->state, SEND_UNSENT);
    VendorHealth health = vendors->api.health(vendors->api.self);
    assert_true(health.down_since_us > 0);
    assert_true(health.reason[0] != '\0');
}

static void a_whole_mail_without_an_answer_is_unknown(void **state)
{
    Vendors *vendors = *state;
    hand_over(vendors, 0, "/silent", PRIORITY_NORMAL);
    hand_over(vendors, 1, "/cut", PRIORITY_NORMAL);
    await_all(vendors, 2);
    assert_int_equal(vendors->sent[0].state, SEND_UNKNOWN);
    assert_int_equal(vendors->sent[1].state, SEND_UNKNOWN);
    assert_int_equal(vendors->net->requests, 2); // none was sent again
}

static void an_answer_whose_body_is_cut_counts_by_its_status(void **state)
{
    const Sent *sent = send_one(*state, "/half");
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, REPLY_ACCEPTED);
}

static void at_most_so_many_calls_are_on_the_way(void **state)
{
    Vendors *vendors = *state;
    for (int i = 0; i < MAILS; i++) {
        hand_over(vendors, i, "/mail", PRIORITY_CRITICAL);
    }
    await_all(vendors, MAILS);
    assert_int_equal(vendors->most, 2);
    assert_int_equal(vendors->net->requests, MAILS);
}

static void what_is_over_the_limit_waits(void **state)
{
    Vendors *vendors = *state;
    vendors->refusals = 3;
    int64_t begun_us = clock_mono_us();
    hand_over(vendors, 0, "/first", PRIORITY_NORMAL);
    hand_over(vendors, 1, "/second", PRIORITY_NORMAL);
    await_all(vendors, 2);
    assert_true(clock_mono_us() - begun_us >= 60000);
    assert_int_equal(vendors->sent[0].reply, REPLY_ACCEPTED);
    assert_int_equal(vendors->sent[1].reply, REPLY_ACCEPTED);
    assert_int_equal(vendors->net->requests, 2);
}

static void a_mail_whose_time_has_come_is_not_started(void **state)
{
    Vendors *vendors = *state;
    Sent *late = hand_over(vendors, 0, "/mail", PRIORITY_NORMAL);
    late->mail.give_up_at_ms = uv_hrtime() / 1000000;
    Sent *lost = hand_over(vendors, 1, "/mail", PRIORITY_NORMAL);
    lost->mail.held_until_ms = 0;
    await_all(vendors, 2);
    assert_int_equal(late->state, SEND_UNSENT);
    assert_int_equal(lost->state, SEND_UNSENT);
    assert_int_equal(vendors->net->requests, 0);
}

static void a_credential_that_cannot_be_read_is_no_fault_of_the_mail(void **state)
{
    Vendors *vendors = *state;
    vendors->no_account = true;
    const Sent *sent = send_one(vendors, "/mail");
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, REPLY_CONFIG);
    assert_string_equal(sent->code, "credential");
    assert_non_null(strstr(sent->text, "'main'"));
}

static void a_mail_that_this_vendor_cannot_carry_may_go_elsewhere(void **state)
{
    Vendors *vendors = *state;
    const Sent *sent = send_one(vendors, "too large");
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, REPLY_ELSEWHERE);
    assert_string_equal(sent->code, "request");
    assert_int_equal(vendors->net->requests, 0);
}

static void a_credential_goes_to_no_host_in_clear(void **state)
{
    Vendors *vendors = *state;
    snprintf(vendors->url, sizeof vendors->url, "http://mail.example.com");
    const Sent *sent = send_one(vendors, "/mail");
    assert_int_equal(sent->reply, REPLY_CONFIG);
    assert_non_null(strstr(sent->text, "'base_url'"));
    assert_int_equal(vendors->net->requests, 0);
    vendors->sent[0].answers = 0;
    snprintf(vendors->url, sizeof vendors->url, "https://10.1.2.3");
    assert_int_equal(send_one(vendors, "/mail")->reply, REPLY_CONFIG);
    assert_non_null(strstr(sent->text, "private"));
}

static void assert_blocked(
    Vendors *vendors, const char *base_url, const char *path, ReplyClass reply, const char *what)
{
    vendors->sent[0].answers = 0;
    snprintf(vendors->url, sizeof vendors->url, "%s", base_url);
    const Sent *sent = send_one(vendors, path);
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, reply);
    assert_string_equal(sent->code, reply == REPLY_CONFIG ? "credential" : "request");
    if (strstr(sent->text, what) != sent->text) {
        fail_msg("expected '%s' in '%s'", what, sent->text);
    }
    assert_int_equal(vendors->net->requests, 0);
}

static void an_endpoint_inside_the_network_is_the_recipients_fault(void **state)
{
    Vendors *vendors = *state;
    assert_blocked(
        vendors, "", "https://10.1.2.3/hook", REPLY_TERMINAL, "the address's endpoint is refused");
    assert_blocked(
        vendors, "https://10.1.2.3", "/hook", REPLY_CONFIG, "setting 'base_url' is refused");
}

static void the_host_of_a_definition_is_the_credentials_fault(void **state)
{
    Vendors *vendors = *state;
    Error err = {0};
    vendors->definition = definition_compile(
        STR("{\"request\":{\"url\":\"https://10.1.2.3/x\",\"json\":{}}}"), CHANNEL_WEBHOOK, &err);
    assert_blocked(
        vendors, "", "https://10.1.2.3/x", REPLY_CONFIG, "'request.url' of the definition is");
    assert_blocked(vendors, "https://10.1.2.3", "/x", REPLY_CONFIG, "setting 'base_url' is");
    definition_drop(vendors->definition);
    vendors->definition = definition_compile(
        STR("{\"request\":{\"url\":\"{{to}}\",\"json\":{}}}"), CHANNEL_WEBHOOK, &err);
    assert_blocked(
        vendors, "", "https://10.1.2.3/x", REPLY_CONFIG, "setting 'address_prefix' is refused");
    definition_drop(vendors->definition);
    vendors->definition = NULL;
}

static void draining_releases_what_waits_and_lets_the_others_end(void **state)
{
    Vendors *vendors = *state;
    for (int i = 0; i < 4; i++) {
        hand_over(vendors, i, "/silent", PRIORITY_CRITICAL);
    }
    while (vendors->net->requests < 2) {
        uv_run(&vendors->net->loop, UV_RUN_ONCE);
    }
    vendors->api.drain(vendors->api.self);
    await_all(vendors, 4);
    assert_int_equal(vendors->sent[0].state, SEND_UNKNOWN);
    assert_int_equal(vendors->sent[1].state, SEND_UNKNOWN);
    assert_int_equal(vendors->sent[2].state, SEND_RELEASED);
    assert_int_equal(vendors->sent[3].state, SEND_RELEASED);
}

static void a_probe_shows_that_the_vendor_is_there(void **state)
{
    Vendors *vendors = *state;
    vendors->api.probe(vendors->api.self);
    int64_t deadline = clock_mono_us() + PATIENCE_US;
    while (vendors->api.health(vendors->api.self).reached_at_us == 0 &&
           clock_mono_us() < deadline) {
        uv_run(&vendors->net->loop, UV_RUN_ONCE);
    }
    assert_true(vendors->api.health(vendors->api.self).reached_at_us > 0);
    assert_non_null(strstr(vendors->net->last, "GET /account HTTP/1.1\r\n"));
}

static void a_campaign_leaves_calls_for_what_is_urgent(void **state)
{
    (void)state;
    HttpQueue queue = {0};
    Mail low[2] = {{.lane = PRIORITY_LOW}, {.lane = PRIORITY_LOW}};
    Mail normal = {.lane = PRIORITY_NORMAL};
    Mail code = {.lane = PRIORITY_CRITICAL};
    http_queue_push(&queue, &low[0]);
    http_queue_push(&queue, &low[1]);
    assert_ptr_equal(http_queue_next(&queue, 5, 8), &low[0]);
    assert_null(http_queue_next(&queue, 6, 8));
    http_queue_push(&queue, &normal);
    assert_ptr_equal(http_queue_next(&queue, 6, 8), &normal);
    http_queue_push(&queue, &normal);
    assert_null(http_queue_next(&queue, 7, 8));
    http_queue_push(&queue, &code);
    assert_ptr_equal(http_queue_next(&queue, 7, 8), &code);
    assert_int_equal(queue.count, 2);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(an_accepted_mail_has_the_vendors_message_id),
        ON_STAGE(a_refusal_is_judged_by_the_vendors_own_reader),
        ON_STAGE(a_vendor_that_refuses_connections_has_not_got_the_mail),
        ON_STAGE(a_whole_mail_without_an_answer_is_unknown),
        ON_STAGE(an_answer_whose_body_is_cut_counts_by_its_status),
        ON_STAGE(at_most_so_many_calls_are_on_the_way),
        ON_STAGE(what_is_over_the_limit_waits),
        ON_STAGE(a_mail_whose_time_has_come_is_not_started),
        ON_STAGE(a_credential_that_cannot_be_read_is_no_fault_of_the_mail),
        ON_STAGE(a_mail_that_this_vendor_cannot_carry_may_go_elsewhere),
        ON_STAGE(a_credential_goes_to_no_host_in_clear),
        cmocka_unit_test_setup_teardown(
            an_endpoint_inside_the_network_is_the_recipients_fault, up_endpoint, down),
        cmocka_unit_test_setup_teardown(
            the_host_of_a_definition_is_the_credentials_fault, up_definition, down),
        ON_STAGE(draining_releases_what_waits_and_lets_the_others_end),
        ON_STAGE(a_probe_shows_that_the_vendor_is_there),
        cmocka_unit_test(a_campaign_leaves_calls_for_what_is_urgent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
