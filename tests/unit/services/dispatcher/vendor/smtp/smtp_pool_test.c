// SPDX-License-Identifier: Apache-2.0
// The SMTP client against a scripted server, over real sockets on one loop.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/dispatcher/vendor/smtp/smtp_pool.h"
#include "tests/unit/services/dispatcher/smtp_script.h"

enum { MAILS = 16, WAIT_MS = 8000 };

typedef struct Sent {
    Mail mail;
    struct Stage *stage;
    int answers;
    SendState state;
    ReplyClass reply;
    char code[8], enhanced[16], text[512];
} Sent;

typedef struct Stage {
    uv_loop_t loop;
    Script script;
    SmtpOptions options;
    SmtpPool *pool;
    Sent sent[MAILS];
    int expected;
    int answered;
    bool closed, late;
    uv_timer_t watchdog;
    bool inside_send;
} Stage;

static void on_pool_closed(void *ctx)
{
    ((Stage *)ctx)->closed = true;
}

static void on_watchdog_timer(uv_timer_t *timer)
{
    ((Stage *)timer->data)->late = true;
}

static int stage_up(void **state)
{
    Stage *stage = xcalloc(1, sizeof *stage);
    uv_loop_init(&stage->loop);
    script_start(&stage->script, &stage->loop);
    stage->options = (SmtpOptions){
        .tls = SMTP_TLS_OFF,
        .ca_file = "",
        .helo = "client.test",
        .connections = 1,
        .mails_max = 1000,
        .connect_ms = 2000,
        .command_ms = 2000,
        .data_ms = 2000,
        .idle_ms = 5000,
        .tenant_percent = 75,
    };
    snprintf(stage->options.host, sizeof stage->options.host, "127.0.0.1");
    snprintf(stage->options.port, sizeof stage->options.port, "%d", stage->script.port);
    uv_timer_init(&stage->loop, &stage->watchdog);
    stage->watchdog.data = stage;
    *state = stage;
    return 0;
}

static void open_pool(Stage *stage)
{
    Error err = {0};
    stage->pool = smtp_pool_new(&stage->loop, &stage->options, &err);
    assert_non_null(stage->pool);
    uv_update_time(&stage->loop); // the system's certificates took a while
    uv_timer_start(&stage->watchdog, on_watchdog_timer, WAIT_MS, 0);
}

static void close_pool(Stage *stage)
{
    smtp_pool_close(stage->pool, on_pool_closed, stage);
    while (!stage->closed && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    stage->pool = NULL;
}

static int stage_down(void **state)
{
    Stage *stage = *state;
    if (stage->pool != NULL) {
        close_pool(stage);
    }
    uv_close((uv_handle_t *)&stage->watchdog, NULL);
    script_stop(&stage->script);
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&stage->loop) == 0 && !stage->late ? 0 : -1;
    script_done(&stage->script);
    free(stage);
    return status;
}

static void on_mail_done(void *ctx, Mail *mail, const SendResult *result)
{
    Sent *sent = ctx;
    assert_ptr_equal(mail, &sent->mail);
    assert_false(sent->stage->inside_send);
    sent->answers++;
    sent->stage->answered++;
    sent->state = result->state;
    sent->reply = result->reply;
    assert_true(str_to_c(result->code, sent->code, sizeof sent->code));
    assert_true(str_to_c(result->enhanced, sent->enhanced, sizeof sent->enhanced));
    assert_true(str_to_c(result->text, sent->text, sizeof sent->text));
}

static Sent *send_for(
    Stage *stage, const char *tenant, Priority lane, const char *to, const char *message)
{
    Sent *sent = &stage->sent[stage->expected++];
    sent->stage = stage;
    sent->mail = (Mail){
        .tenant = str_from(tenant),
        .from = STR("shop@example.com"),
        .to = str_from(to),
        .message = str_from(message),
        .lane = lane,
        .give_up_at_ms = uv_now(&stage->loop) + 60000,
        .held_until_ms = uv_now(&stage->loop) + 60000,
        .on_done = on_mail_done,
        .ctx = sent,
    };
    stage->inside_send = true;
    smtp_pool_send(stage->pool, &sent->mail);
    stage->inside_send = false;
    return sent;
}

static Sent *send_in_lane(Stage *stage, Priority lane, const char *to, const char *message)
{
    return send_for(stage, "acme", lane, to, message);
}

static Sent *send_mail(Stage *stage, const char *to, const char *message)
{
    return send_in_lane(stage, PRIORITY_NORMAL, to, message);
}

static void run(Stage *stage)
{
    while (stage->answered < stage->expected && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
    for (int i = 0; i < stage->expected; i++) {
        assert_int_equal(stage->sent[i].answers, 1);
    }
}

static void expect_log(Stage *stage, const char *expected)
{
    assert_string_equal(buf_c(&stage->script.log), expected);
}

static void expect_answer(
    const Sent *sent, ReplyClass reply, const char *code, const char *enhanced)
{
    assert_int_equal(sent->state, SEND_ANSWERED);
    assert_int_equal(sent->reply, reply);
    assert_string_equal(sent->code, code);
    assert_string_equal(sent->enhanced, enhanced);
}

// ---- the good way ----

static void a_mail_costs_one_group_and_one_message(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "Subject: x\r\n\r\nhello\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_string_equal(sent->text, "Ok: queued");
    expect_log(
        stage, "+EHLO client.test\n|"
               "MAIL FROM:<shop@example.com> SIZE=21\nRCPT TO:<a@example.org>\nDATA\n|.\n|");
    assert_string_equal(stage->script.mails[0], "Subject: x\r\n\r\nhello\r\n");
}

static const Str COPIES[] = {{"c@example.org", 13}, {"d@example.org", 13}};

static Sent *send_with_copies(Stage *stage, const char *to, const char *message)
{
    Sent *sent = send_mail(stage, to, message);
    sent->mail.copies = COPIES; // before the loop writes it
    sent->mail.copy_count = 2;
    return sent;
}

static void copies_go_in_the_same_transaction(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *a = send_with_copies(stage, "a@example.org", "1\r\n");
    Sent *b = send_mail(stage, "b@example.org", "2\r\n");
    run(stage);
    expect_answer(a, REPLY_ACCEPTED, "250", "2.0.0");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    expect_log(
        stage, "+EHLO client.test\n|"
               "MAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<a@example.org>\n"
               "RCPT TO:<c@example.org>\nRCPT TO:<d@example.org>\n|DATA\n|"
               ".\nMAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<b@example.org>\nDATA\n|"
               ".\n|");
    assert_int_equal(stage->script.mail_count, 2);
}

static void a_refused_copy_fails_nothing_and_is_told(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "RCPT TO:<c@", "550 5.1.1 no such user", 0);
    open_pool(stage);
    Sent *a = send_with_copies(stage, "a@example.org", "1\r\n");
    Sent *b = send_mail(stage, "b@example.org", "2\r\n");
    run(stage);
    expect_answer(a, REPLY_ACCEPTED, "250", "2.0.0");
    assert_string_equal(a->text, "Ok: queued (1 of 2 copies refused, the first: 550 no such user)");
    assert_string_equal(b->text, "Ok: queued");
}

static void a_refused_recipient_sends_nothing_to_its_copies(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "RCPT TO:<a@", "550 5.1.1 no such user", 0);
    open_pool(stage);
    Sent *a = send_with_copies(stage, "a@example.org", "1\r\n");
    Sent *b = send_mail(stage, "b@example.org", "2\r\n");
    run(stage);
    expect_answer(a, REPLY_BAD_ADDRESS, "550", "5.1.1");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.mail_count, 1); // not even an empty mail
    assert_non_null(strstr(buf_c(&stage->script.log), "|RSET\nMAIL FROM:"));
}

static void copies_without_pipelining_are_named_one_by_one(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "EHLO", "250 script", 0);
    script_rule(&stage->script, "RCPT TO:<d@", "450 4.2.1 later", 0);
    open_pool(stage);
    Sent *a = send_with_copies(stage, "a@example.org", "1\r\n");
    run(stage);
    expect_answer(a, REPLY_ACCEPTED, "250", "2.0.0");
    expect_log(
        stage, "+EHLO client.test\n|MAIL FROM:<shop@example.com>\n|RCPT TO:<a@example.org>\n|"
               "RCPT TO:<c@example.org>\n|RCPT TO:<d@example.org>\n|DATA\n|.\n|");
}

static void a_refused_sender_ends_a_mail_with_copies(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "MAIL FROM", "550 5.7.1 not you", 1);
    script_rule(&stage->script, "RCPT TO:<a@", "503 5.5.1 MAIL first", 1);
    script_rule(&stage->script, "RCPT TO:<c@", "503 5.5.1 MAIL first", 1);
    script_rule(&stage->script, "RCPT TO:<d@", "503 5.5.1 MAIL first", 1);
    open_pool(stage);
    Sent *a = send_with_copies(stage, "a@example.org", "1\r\n");
    Sent *b = send_with_copies(stage, "a@example.org", "2\r\n");
    run(stage);
    expect_answer(a, REPLY_TERMINAL, "550", "5.7.1");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    assert_string_equal(b->text, "Ok: queued");
}

static void a_server_that_offers_dsn_gets_an_envelope_id(void **state)
{
    Stage *stage = *state;
    script_rule(
        &stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250-DSN\r\n250 SIZE 100000", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "1\r\n");
    sent->mail.envid = STR("01m2v3"); // before the loop writes it
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    expect_log(
        stage, "+EHLO client.test\n|"
               "MAIL FROM:<shop@example.com> SIZE=3 RET=HDRS ENVID=01m2v3\n"
               "RCPT TO:<a@example.org>\nDATA\n|.\n|");
}

static void the_next_envelope_goes_behind_the_final_dot(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    send_mail(stage, "a@example.org", "1\r\n");
    send_mail(stage, "b@example.org", "2\r\n");
    send_mail(stage, "c@example.org", "3\r\n");
    run(stage);
    expect_log(
        stage, "+EHLO client.test\n|"
               "MAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<a@example.org>\nDATA\n|"
               ".\nMAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<b@example.org>\nDATA\n|"
               ".\nMAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<c@example.org>\nDATA\n|"
               ".\n|");
    assert_string_equal(stage->script.mails[2], "3\r\n");
}

static void without_pipelining_each_command_waits_for_its_answer(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "EHLO", "250 script", 0);
    script_rule(&stage->script, "RCPT TO:<a@", "550 5.7.1 no", 0);
    open_pool(stage);
    Sent *a = send_mail(stage, "a@example.org", "1\r\n");
    Sent *b = send_mail(stage, "b@example.org", "2\r\n");
    run(stage);
    expect_answer(a, REPLY_TERMINAL, "550", "5.7.1");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    expect_log(
        stage,
        "+EHLO client.test\n|MAIL FROM:<shop@example.com>\n|RCPT TO:<a@example.org>\n|RSET\n|"
        "MAIL FROM:<shop@example.com>\n|RCPT TO:<b@example.org>\n|DATA\n|.\n|");
}

static void lines_that_begin_with_a_dot_get_a_second_one(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    send_mail(stage, "a@example.org", ".first\r\na.b\r\n.\r\n..two\r\nend");
    run(stage);
    assert_string_equal(stage->script.mails[0], "..first\r\na.b\r\n..\r\n...two\r\nend\r\n");
}

static void a_server_without_ehlo_is_greeted_with_helo(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "EHLO", "500 what?", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    expect_log(
        stage, "+EHLO client.test\n|HELO client.test\n|MAIL FROM:<shop@example.com>\n|RCPT "
               "TO:<a@example.org>\n|DATA\n|.\n|");
}

static void after_so_many_mails_a_new_connection_is_made(void **state)
{
    Stage *stage = *state;
    stage->options.mails_max = 2;
    open_pool(stage);
    for (int i = 0; i < 5; i++) {
        send_mail(stage, "a@example.org", "x\r\n");
    }
    run(stage);
    assert_int_equal(stage->script.connections, 3);
    assert_int_equal(stage->script.mail_count, 5);
    assert_non_null(strstr(buf_c(&stage->script.log), "QUIT"));
}

static void an_idle_connection_says_quit(void **state)
{
    Stage *stage = *state;
    stage->options.idle_ms = 100;
    open_pool(stage);
    send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    while (stage->script.open > 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_true(str_ends(buf_view(&stage->script.log), STR("QUIT\n|")));
}

static void critical_mails_go_first(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    send_mail(stage, "low@example.org", "low\r\n")->mail.lane = PRIORITY_NORMAL;
    Sent *urgent = &stage->sent[stage->expected++];
    urgent->stage = stage;
    urgent->mail = stage->sent[0].mail;
    urgent->mail.ctx = urgent;
    urgent->mail.lane = PRIORITY_CRITICAL;
    urgent->mail.message = STR("urgent\r\n");
    smtp_pool_send(stage->pool, &urgent->mail);
    run(stage);
    assert_string_equal(stage->script.mails[0], "urgent\r\n");
}

static void many_mails_use_several_connections(void **state)
{
    Stage *stage = *state;
    stage->options.connections = 4;
    open_pool(stage);
    for (int i = 0; i < MAILS; i++) {
        send_mail(stage, "a@example.org", "x\r\n");
    }
    run(stage);
    assert_int_equal(stage->script.connections, 3); // the fourth is kept for what is urgent
    assert_int_equal(stage->script.mail_count, MAILS);
}

// ---- refusals ----

static void each_stage_may_refuse_and_the_next_mail_goes_on(void **state)
{
    Stage *stage = *state;
    // clang-format off
    static const struct { const char *line; const char *reply; ReplyClass reply_class; const char *code, *enhanced; } rows[] = {
        {"MAIL", "451 4.3.0 later", REPLY_RETRY, "451", "4.3.0"},
        {"MAIL", "550 5.7.1 not you", REPLY_TERMINAL, "550", "5.7.1"},
        {"RCPT", "450-4.2.1 busy\r\n450 4.2.1 really", REPLY_THROTTLED, "450", "4.2.1"},
        {"RCPT", "550 5.1.1 no such user", REPLY_BAD_ADDRESS, "550", "5.1.1"},
        {"DATA", "451 4.3.0 later", REPLY_RETRY, "451", "4.3.0"},
        {"DATA", "554 5.5.1 no", REPLY_TERMINAL, "554", "5.5.1"},
        {".", "451 4.3.0 later", REPLY_RETRY, "451", "4.3.0"},
        {".", "552 5.3.4 too big", REPLY_TERMINAL, "552", "5.3.4"},
    };
    // clang-format on
    open_pool(stage);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        script_rule(&stage->script, rows[i].line, rows[i].reply, 1);
        Sent *refused = send_mail(stage, "a@example.org", "x\r\n");
        run(stage);
        expect_answer(refused, rows[i].reply_class, rows[i].code, rows[i].enhanced);
        Sent *next = send_mail(stage, "b@example.org", "y\r\n");
        run(stage);
        expect_answer(next, REPLY_ACCEPTED, "250", "2.0.0");
    }
    assert_int_equal(stage->script.connections, 1);
}

static void a_refused_recipient_with_data_taken_ends_in_a_lone_dot(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "RCPT TO:<a@", "550 5.1.1 no such user", 0);
    open_pool(stage);
    Sent *a = send_mail(stage, "a@example.org", "secret\r\n");
    Sent *b = send_mail(stage, "b@example.org", "y\r\n");
    run(stage);
    expect_answer(a, REPLY_BAD_ADDRESS, "550", "5.1.1");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    assert_string_equal(stage->script.mails[0], ""); // nothing of it went to that address
    assert_string_equal(stage->script.mails[1], "y\r\n");
}

static void a_refused_recipient_with_data_refused_is_reset(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "RCPT TO:<a@", "550 5.1.1 no such user", 0);
    script_rule(&stage->script, "DATA", "554 5.5.1 no valid recipients", 1);
    open_pool(stage);
    Sent *a = send_mail(stage, "a@example.org", "x\r\n");
    Sent *b = send_mail(stage, "b@example.org", "y\r\n");
    run(stage);
    expect_answer(a, REPLY_BAD_ADDRESS, "550", "5.1.1");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    assert_non_null(strstr(
        buf_c(&stage->script.log), "|RSET\nMAIL FROM:<shop@example.com> SIZE=3\nRCPT TO:<b@"));
}

static void what_the_server_cannot_take_is_not_tried(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250 SIZE 10", 0);
    open_pool(stage);
    Sent *big = send_mail(stage, "a@example.org", "0123456789\r\n");
    Sent *foreign = send_mail(stage, "j\xc3\xb6rg@example.org", "x\r\n");
    foreign->mail.utf8 = true;
    run(stage);
    expect_answer(big, REPLY_TERMINAL, "552", "5.3.4");
    expect_answer(foreign, REPLY_BAD_ADDRESS, "553", "5.6.7");
    expect_log(stage, "+EHLO client.test\n|");
}

static void an_address_beyond_ascii_is_sent_with_smtputf8(void **state)
{
    Stage *stage = *state;
    script_rule(
        &stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8", 0);
    open_pool(stage);
    Sent *foreign = send_mail(stage, "j\xc3\xb6rg@example.org", "x\r\n");
    foreign->mail.utf8 = true;
    run(stage);
    expect_answer(foreign, REPLY_ACCEPTED, "250", "2.0.0");
    assert_non_null(strstr(
        buf_c(&stage->script.log),
        "MAIL FROM:<shop@example.com> BODY=8BITMIME SMTPUTF8\nRCPT TO:<j\xc3\xb6rg@"));
}

// ---- broken connections ----

static void a_mail_whose_dot_was_not_sent_goes_to_another_connection(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "DATA", SCRIPT_CLOSE, 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 2);
    assert_int_equal(stage->script.mail_count, 1);
}

static void a_mail_whose_dot_got_no_answer_is_unknown(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, ".", SCRIPT_CLOSE, 1);
    open_pool(stage);
    Sent *first = send_mail(stage, "a@example.org", "x\r\n");
    Sent *behind =
        send_mail(stage, "b@example.org", "y\r\n"); // its envelope is on the same connection
    run(stage);
    assert_int_equal(first->state, SEND_UNKNOWN);
    expect_answer(behind, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 2);
}

static void silence_after_the_dot_is_unknown_after_the_time_out(void **state)
{
    Stage *stage = *state;
    stage->options.data_ms = 100;
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    assert_int_equal(sent->state, SEND_UNKNOWN);
}

static void silence_before_the_dot_is_tried_again(void **state)
{
    Stage *stage = *state;
    stage->options.command_ms = 100;
    script_rule(&stage->script, "RCPT", SCRIPT_SILENCE, 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 2);
}

static void run_until_logged(Stage *stage, const char *text)
{
    while (strstr(buf_c(&stage->script.log), text) == NULL && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
}

// As after a SIGSTOP that was longer than the lease.
static void a_mail_whose_claim_ended_is_not_written(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    Sent *behind = send_mail(stage, "b@example.org", "y\r\n");
    run_until_logged(stage, "DATA\n");
    sent->mail.held_until_ms = uv_hrtime() / 1000000;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    expect_answer(behind, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.mail_count, 1);
    assert_int_equal(smtp_pool_health(stage->pool).down_since_us, 0); // the server is not to blame
}

static void a_mail_whose_claim_ended_in_the_queue_is_not_begun(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.held_until_ms = uv_hrtime() / 1000000;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_null(strstr(buf_c(&stage->script.log), "MAIL"));
}

// ---- the limit of the server ----

typedef struct Limit {
    int tokens;
    size_t most_waiting;
    int asked;
} Limit;

static bool take_token(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us)
{
    Limit *limit = ctx;
    limit->asked++;
    limit->most_waiting = waiting > limit->most_waiting ? waiting : limit->most_waiting;
    if (limit->tokens > 0 || lane == PRIORITY_CRITICAL) {
        limit->tokens--;
        return true;
    }
    limit->tokens = 1;
    *ret_at_us = clock_mono_us() + 20000;
    return false;
}

static void mails_wait_for_the_limit_and_none_is_lost(void **state)
{
    Stage *stage = *state;
    Limit limit = {.tokens = 1};
    open_pool(stage);
    smtp_pool_limit(stage->pool, take_token, &limit);
    for (int i = 0; i < 6; i++) {
        (void)send_mail(stage, "a@example.org", "x\r\n");
    }
    int64_t began_us = clock_mono_us();
    run(stage);
    assert_true(clock_mono_us() - began_us >= 5 * 20000);
    assert_int_equal(stage->script.mail_count, 6);
    assert_int_equal(limit.most_waiting, 6);
}

static bool take_none(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us)
{
    (void)waiting;
    int *asked = ctx;
    ++*asked;
    *ret_at_us = clock_mono_us() + 60000000;
    return lane == PRIORITY_CRITICAL;
}

static void an_urgent_mail_asks_while_others_wait_for_the_limit(void **state)
{
    Stage *stage = *state;
    int asked = 0;
    open_pool(stage);
    smtp_pool_limit(stage->pool, take_none, &asked);
    Sent *waits = send_mail(stage, "a@example.org", "x\r\n");
    while (asked == 0) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    Sent *urgent = send_in_lane(stage, PRIORITY_CRITICAL, "b@example.org", "y\r\n");
    while (urgent->answers == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    expect_answer(urgent, REPLY_ACCEPTED, "250", "2.0.0");
    waits->mail.give_up_at_ms = uv_hrtime() / 1000000;
    run(stage);
    assert_int_equal(waits->state, SEND_UNSENT);
    assert_string_equal(waits->code, SMTP_POOL_LIMITED);
    assert_int_equal(stage->script.mail_count, 1);
}

static void a_mail_that_breaks_every_connection_is_unsent(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "DATA", SCRIPT_CLOSE, 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_int_equal(stage->script.connections, 5);
    assert_int_equal(stage->script.mail_count, 0);
}

static void mails_wait_for_a_server_that_greets_with_421(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "", "421 4.3.2 closing", 2);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 3);
    assert_int_equal(smtp_pool_stats(stage->pool).connect_failures, 2);
    assert_int_equal(smtp_pool_health(stage->pool).down_since_us, 0);
}

static void an_answer_of_421_to_the_mail_is_its_answer(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, ".", "421 4.7.0 too many", 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_THROTTLED, "421", "4.7.0");
}

static void a_sequence_error_leads_to_a_new_connection(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "MAIL", "503 5.5.1 bad sequence", 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 2);
}

static void mails_are_given_up_when_the_port_is_closed(void **state)
{
    Stage *stage = *state;
    snprintf(stage->options.port, sizeof stage->options.port, "1"); // nothing listens there
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = uv_now(&stage->loop) + 500;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_string_equal(sent->text, "smtp://127.0.0.1:1: connect: connection refused");
    assert_true(smtp_pool_health(stage->pool).down_since_us > 0);
}

static bool is_down(const Stage *stage)
{
    return smtp_pool_health(stage->pool).down_since_us > 0;
}

// Without a mail: what is said of the server must end when it is back, though all its mails have
// been given up meanwhile.
static void a_server_that_was_away_is_found_again_without_a_mail(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "", "421 4.3.2 closing", 3);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = 0;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    while (!is_down(stage) && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    VendorHealth away = smtp_pool_health(stage->pool);
    assert_non_null(strstr(away.reason, "421 4.3.2 closing"));
    assert_int_equal(away.reached_at_us, 0);
    while (is_down(stage) && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
    assert_true(smtp_pool_health(stage->pool).reached_at_us > away.down_since_us);
    assert_int_equal(stage->script.connections, 4);
}

// A server that takes no more connections is not away while it answers on those that it has.
static void who_answers_on_one_connection_is_not_down(void **state)
{
    static const char *const to[] = {"b@example.org", "c@example.org", "d@example.org",
                                     "e@example.org", "f@example.org", "g@example.org"};
    Stage *stage = *state;
    stage->options.connections = 2;
    stage->options.tenant_percent = 100;
    open_pool(stage);
    send_in_lane(stage, PRIORITY_HIGH, "a@example.org", "x\r\n");
    run(stage);
    script_rule(&stage->script, "", "421 4.7.0 too many connections", 1);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) { // more than one connection holds
        send_in_lane(stage, PRIORITY_HIGH, to[i], "x\r\n");
    }
    while (smtp_pool_stats(stage->pool).connect_failures == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    run(stage);
    uint64_t later = uv_now(&stage->loop) + 2;
    while (uv_now(&stage->loop) < later && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    send_in_lane(stage, PRIORITY_HIGH, "h@example.org", "x\r\n");
    run(stage);
    assert_false(stage->late);
    assert_int_equal(smtp_pool_stats(stage->pool).connect_failures, 1);
    assert_false(is_down(stage));
}

static void a_probe_opens_a_connection_without_a_mail(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    smtp_pool_probe(stage->pool);
    while (smtp_pool_health(stage->pool).reached_at_us == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
    assert_int_equal(stage->script.connections, 1);
    send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    assert_int_equal(stage->script.connections, 1); // the same one
}

static void nonsense_from_the_server_ends_the_connection(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "MAIL", "hello you", 1);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->script.connections, 2);
}

// ---- draining ----

static void draining_releases_what_is_not_begun(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    smtp_pool_drain(stage->pool);
    Sent *late = send_mail(stage, "b@example.org", "y\r\n");
    run(stage);
    assert_int_equal(sent->state, SEND_RELEASED);
    assert_int_equal(late->state, SEND_RELEASED);
    assert_int_equal(stage->script.connections, 0);
}

static void draining_lets_what_is_begun_end(void **state)
{
    Stage *stage = *state;
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    while (!str_ends(buf_view(&stage->script.log), STR("DATA\n|"))) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    Sent *late = send_mail(stage, "b@example.org", "y\r\n");
    smtp_pool_drain(stage->pool);
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(late->state, SEND_RELEASED);
}

static void closing_answers_what_hangs(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 0);
    open_pool(stage);
    Sent *hanging = send_mail(stage, "a@example.org", "x\r\n");
    while (stage->script.mail_count == 0) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    close_pool(stage);
    assert_int_equal(hanging->answers, 1);
    assert_int_equal(hanging->state, SEND_UNKNOWN);
}

// ---- AUTH and TLS ----

static void log_in(Stage *stage)
{
    snprintf(stage->options.user, sizeof stage->options.user, "me");
    snprintf(stage->options.password, sizeof stage->options.password, "secret");
    stage->options.tls = SMTP_TLS_PLAINTEXT;
}

static void a_user_logs_in_with_plain(void **state)
{
    Stage *stage = *state;
    log_in(stage);
    script_rule(&stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250 AUTH LOGIN PLAIN", 0);
    script_rule(&stage->script, "AUTH PLAIN AG1lAHNlY3JldA==", "235 2.7.0 welcome", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
}

static void a_user_logs_in_with_login(void **state)
{
    Stage *stage = *state;
    log_in(stage);
    script_rule(&stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250 AUTH LOGIN", 0);
    script_rule(&stage->script, "AUTH LOGIN", "334 VXNlcm5hbWU6", 0);
    script_rule(&stage->script, "bWU=", "334 UGFzc3dvcmQ6", 0);
    script_rule(&stage->script, "c2VjcmV0", "235 2.7.0 welcome", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
}

static void a_refused_password_keeps_the_mail_waiting(void **state)
{
    Stage *stage = *state;
    log_in(stage);
    script_rule(&stage->script, "EHLO", "250-script\r\n250 AUTH PLAIN", 0);
    script_rule(&stage->script, "AUTH", "535 5.7.8 wrong", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = uv_now(&stage->loop) + 300;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_non_null(strstr(sent->text, "the server answers AUTH with '535 5.7.8 wrong'"));
}

static void a_password_is_not_sent_in_the_clear(void **state)
{
    Stage *stage = *state;
    log_in(stage);
    stage->options.tls = SMTP_TLS_OPPORTUNISTIC;
    script_rule(&stage->script, "EHLO", "250-script\r\n250 AUTH PLAIN", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = uv_now(&stage->loop) + 300;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_null(strstr(buf_c(&stage->script.log), "AUTH"));
}

static void use_tls(Stage *stage, const char *host)
{
    script_certificate(&stage->script, host);
    script_rule(&stage->script, "EHLO", "250-script\r\n250-PIPELINING\r\n250 STARTTLS", 0);
    stage->options.tls = SMTP_TLS_REQUIRED;
    stage->options.ca_file = stage->script.ca_file;
    snprintf(stage->options.host, sizeof stage->options.host, "localhost");
}

static void starttls_verifies_and_greets_again(void **state)
{
    Stage *stage = *state;
    use_tls(stage, "localhost");
    open_pool(stage);
    Sent *a = send_mail(stage, "a@example.org", "x\r\n");
    Sent *b = send_mail(stage, "b@example.org", "y\r\n");
    run(stage);
    expect_answer(a, REPLY_ACCEPTED, "250", "2.0.0");
    expect_answer(b, REPLY_ACCEPTED, "250", "2.0.0");
    const char *log = buf_c(&stage->script.log);
    assert_non_null(strstr(log, "EHLO client.test\n|STARTTLS\n|(tls)"));
    assert_true(
        strstr(log, "(tls)EHLO client.test\n") != NULL ||
        strstr(log, "(tls)|EHLO client.test\n") != NULL);
    assert_string_equal(stage->script.mails[0], "x\r\n");
}

static void a_certificate_for_another_host_is_refused(void **state)
{
    Stage *stage = *state;
    use_tls(stage, "elsewhere.example.com");
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = uv_now(&stage->loop) + 500;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_non_null(strstr(sent->text, "the server's certificate is not accepted"));
    assert_int_equal(stage->script.mail_count, 0);
}

static void opportunistic_tls_takes_any_certificate(void **state)
{
    Stage *stage = *state;
    use_tls(stage, "elsewhere.example.com");
    stage->options.tls = SMTP_TLS_OPPORTUNISTIC;
    stage->options.ca_file = "";
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
    assert_non_null(strstr(buf_c(&stage->script.log), "(tls)"));
}

// The certificates that a server may show to whom has a password: only the right one gets it.
static void finding_10_only_a_verified_server_gets_the_password(void **state)
{
    Stage *stage = *state;
    static const struct {
        const char *host;
        int valid_s;
        bool trusted, starttls;
        SmtpTlsMode mode;
        bool gets_it;
    } rows[] = {
        {"localhost", 3600, true, true, SMTP_TLS_REQUIRED, true},
        {"localhost", 3600, false, true, SMTP_TLS_REQUIRED, false}, // signs itself
        {"evil.example.com", 3600, true, true, SMTP_TLS_REQUIRED, false},
        {"localhost", -30, true, true, SMTP_TLS_REQUIRED, false},   // expired
        {"localhost", 3600, true, false, SMTP_TLS_REQUIRED, false}, // STARTTLS taken away
        {"localhost", 3600, true, true, SMTP_TLS_OPPORTUNISTIC, false},
        {"localhost", 3600, true, true, SMTP_TLS_OFF, false},
        {"evil.example.com", -30, false, true, SMTP_TLS_UNVERIFIED, true}, // said in so many words
        {"evil.example.com", -30, false, false, SMTP_TLS_UNVERIFIED, false},
        {"localhost", 3600, true, false, SMTP_TLS_PLAINTEXT, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        script_certificate_until(&stage->script, rows[i].host, rows[i].valid_s);
        stage->script.rule_count = 0;
        buf_clear(&stage->script.log);
        script_rule(
            &stage->script, "EHLO",
            rows[i].starttls ? "250-script\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS"
                             : "250-script\r\n250 AUTH PLAIN LOGIN",
            0);
        script_rule(&stage->script, "AUTH", "235 2.7.0 welcome", 0);
        log_in(stage);
        stage->options.tls = rows[i].mode;
        stage->options.ca_file = rows[i].trusted ? stage->script.ca_file : "";
        snprintf(stage->options.host, sizeof stage->options.host, "localhost");
        open_pool(stage);
        Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
        sent->mail.give_up_at_ms = uv_now(&stage->loop) + (rows[i].gets_it ? 5000 : 300);
        run(stage);
        close_pool(stage);
        assert_non_null(strstr(buf_c(&stage->script.log), "EHLO"));
        bool got = strstr(buf_c(&stage->script.log), "AUTH PLAIN") != NULL;
        if (got != rows[i].gets_it || (sent->state == SEND_ANSWERED) != rows[i].gets_it) {
            fail_msg("row %zu: %s", i, buf_c(&stage->script.log));
        }
    }
}

static void required_tls_refuses_a_server_without_it(void **state)
{
    Stage *stage = *state;
    use_tls(stage, "localhost");
    stage->script.rule_count = 0; // EHLO without STARTTLS
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "x\r\n");
    sent->mail.give_up_at_ms = uv_now(&stage->loop) + 300;
    run(stage);
    assert_int_equal(sent->state, SEND_UNSENT);
    assert_non_null(strstr(sent->text, "the server offers no STARTTLS"));
}

static void what_is_slipped_in_behind_starttls_is_dropped(void **state)
{
    Stage *stage = *state;
    use_tls(stage, "localhost");
    // An attacker's clear-text answer, which must not be taken for the answer to the EHLO inside
    // TLS.
    script_rule(&stage->script, "STARTTLS", "220 go on\r\n250-evil\r\n250 SIZE 1", 0);
    open_pool(stage);
    Sent *sent = send_mail(stage, "a@example.org", "longer than one\r\n");
    run(stage);
    expect_answer(sent, REPLY_ACCEPTED, "250", "2.0.0");
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_up, stage_down)

static void a_campaign_that_hangs_does_not_hold_the_connection_of_a_code(void **state)
{
    Stage *stage = *state;
    stage->options.connections = 4;
    script_rule(&stage->script, "EHLO", "250 script", 0); // no pipelining: silence is silence
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 3);
    open_pool(stage);
    for (int i = 0; i < 12; i++) {
        send_in_lane(stage, PRIORITY_NORMAL, "any@example.org", "any\r\n");
    }
    while (stage->script.mail_count != 3 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE); // three connections wait for an answer
    }
    size_t queued = smtp_pool_stats(stage->pool).queued;
    assert_int_equal(smtp_pool_stats(stage->pool).connections, 3);
    Sent *code = send_in_lane(stage, PRIORITY_CRITICAL, "code@example.org", "code\r\n");
    while (code->answers == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    expect_answer(code, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->answered, 1);
    assert_int_equal(smtp_pool_stats(stage->pool).connections, 4);
    assert_int_equal(smtp_pool_stats(stage->pool).queued, queued); // the fourth took none of them
}

static void a_flood_that_hangs_in_the_lowest_lane_leaves_a_connection_to_the_others(void **state)
{
    Stage *stage = *state;
    stage->options.connections = 4;
    script_rule(&stage->script, "EHLO", "250 script", 0); // no pipelining: silence is silence
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 2);
    open_pool(stage);
    for (int i = 0; i < 12; i++) {
        send_in_lane(stage, PRIORITY_LOW, "low@example.org", "low\r\n");
    }
    while (stage->script.mail_count != 2 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE); // two connections wait for an answer
    }
    size_t queued = smtp_pool_stats(stage->pool).queued;
    assert_int_equal(smtp_pool_stats(stage->pool).connections, 2);
    Sent *other = send_in_lane(stage, PRIORITY_NORMAL, "other@example.org", "other\r\n");
    while (other->answers == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    expect_answer(other, REPLY_ACCEPTED, "250", "2.0.0");
    assert_int_equal(stage->answered, 1);
    assert_int_equal(smtp_pool_stats(stage->pool).connections, 3);
    assert_int_equal(smtp_pool_stats(stage->pool).queued, queued); // the third took none of them
}

static Sent *send_of(Stage *stage, const char *tenant)
{
    return send_for(stage, tenant, PRIORITY_NORMAL, "a@example.org", "x\r\n");
}

static void until_answered(Stage *stage, const Sent *sent)
{
    while (sent->answers == 0 && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
}

static void until_kept(Stage *stage, size_t mails)
{
    while (stage->script.mail_count < mails && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_false(stage->late);
}

// Three of four connections serve the lane; of these a tenant may hold two.
static void check_a_tenant_that_hangs(Stage *stage)
{
    stage->options.connections = 4;
    script_rule(&stage->script, ".", "250 2.0.0 Ok", 2); // who makes the company
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 2);
    open_pool(stage);
    until_answered(stage, send_of(stage, "other"));
    until_answered(stage, send_of(stage, "slow"));
    for (int i = 0; i < 8; i++) {
        (void)send_of(stage, "slow");
    }
    until_kept(stage, 4); // two connections wait for an answer
    for (int i = 0; i < 4; i++) {
        Sent *other = send_of(stage, "other");
        until_answered(stage, other);
        expect_answer(other, REPLY_ACCEPTED, "250", "2.0.0");
    }
    assert_int_equal(stage->script.mail_count, 8); // and none of the slow one's six
}

static void finding_fairness_a_tenant_that_hangs_leaves_connections_to_the_others(void **state)
{
    Stage *stage = *state;
    script_rule(&stage->script, "EHLO", "250 script", 0); // no pipelining
    check_a_tenant_that_hangs(stage);
}

static void finding_fairness_no_other_tenants_mail_goes_behind_one_that_hangs(void **state)
{
    check_a_tenant_that_hangs(*state);
}

static void a_tenant_without_company_may_hold_every_connection(void **state)
{
    Stage *stage = *state;
    stage->options.connections = 4;
    script_rule(&stage->script, "EHLO", "250 script", 0);
    script_rule(&stage->script, ".", SCRIPT_SILENCE, 3);
    open_pool(stage);
    for (int i = 0; i < 8; i++) {
        (void)send_of(stage, "alone");
    }
    until_kept(stage, 3);
    assert_int_equal(smtp_pool_stats(stage->pool).connections, 3);
}

static const struct CMUnitTest TESTS[] = {
    ON_STAGE(a_mail_costs_one_group_and_one_message),
    ON_STAGE(copies_go_in_the_same_transaction),
    ON_STAGE(a_refused_copy_fails_nothing_and_is_told),
    ON_STAGE(a_refused_recipient_sends_nothing_to_its_copies),
    ON_STAGE(copies_without_pipelining_are_named_one_by_one),
    ON_STAGE(a_refused_sender_ends_a_mail_with_copies),
    ON_STAGE(a_server_that_offers_dsn_gets_an_envelope_id),
    ON_STAGE(the_next_envelope_goes_behind_the_final_dot),
    ON_STAGE(without_pipelining_each_command_waits_for_its_answer),
    ON_STAGE(lines_that_begin_with_a_dot_get_a_second_one),
    ON_STAGE(a_server_without_ehlo_is_greeted_with_helo),
    ON_STAGE(after_so_many_mails_a_new_connection_is_made),
    ON_STAGE(an_idle_connection_says_quit),
    ON_STAGE(critical_mails_go_first),
    ON_STAGE(a_campaign_that_hangs_does_not_hold_the_connection_of_a_code),
    ON_STAGE(finding_fairness_a_tenant_that_hangs_leaves_connections_to_the_others),
    ON_STAGE(finding_fairness_no_other_tenants_mail_goes_behind_one_that_hangs),
    ON_STAGE(a_tenant_without_company_may_hold_every_connection),
    ON_STAGE(a_flood_that_hangs_in_the_lowest_lane_leaves_a_connection_to_the_others),
    ON_STAGE(many_mails_use_several_connections),
    ON_STAGE(each_stage_may_refuse_and_the_next_mail_goes_on),
    ON_STAGE(a_refused_recipient_with_data_taken_ends_in_a_lone_dot),
    ON_STAGE(a_refused_recipient_with_data_refused_is_reset),
    ON_STAGE(what_the_server_cannot_take_is_not_tried),
    ON_STAGE(an_address_beyond_ascii_is_sent_with_smtputf8),
    ON_STAGE(a_mail_whose_dot_was_not_sent_goes_to_another_connection),
    ON_STAGE(a_mail_whose_dot_got_no_answer_is_unknown),
    ON_STAGE(silence_after_the_dot_is_unknown_after_the_time_out),
    ON_STAGE(silence_before_the_dot_is_tried_again),
    ON_STAGE(a_mail_whose_claim_ended_is_not_written),
    ON_STAGE(a_mail_whose_claim_ended_in_the_queue_is_not_begun),
    ON_STAGE(mails_wait_for_the_limit_and_none_is_lost),
    ON_STAGE(an_urgent_mail_asks_while_others_wait_for_the_limit),
    ON_STAGE(a_mail_that_breaks_every_connection_is_unsent),
    ON_STAGE(mails_wait_for_a_server_that_greets_with_421),
    ON_STAGE(an_answer_of_421_to_the_mail_is_its_answer),
    ON_STAGE(a_sequence_error_leads_to_a_new_connection),
    ON_STAGE(mails_are_given_up_when_the_port_is_closed),
    ON_STAGE(a_server_that_was_away_is_found_again_without_a_mail),
    ON_STAGE(who_answers_on_one_connection_is_not_down),
    ON_STAGE(a_probe_opens_a_connection_without_a_mail),
    ON_STAGE(nonsense_from_the_server_ends_the_connection),
    ON_STAGE(draining_releases_what_is_not_begun),
    ON_STAGE(draining_lets_what_is_begun_end),
    ON_STAGE(closing_answers_what_hangs),
    ON_STAGE(a_user_logs_in_with_plain),
    ON_STAGE(a_user_logs_in_with_login),
    ON_STAGE(a_refused_password_keeps_the_mail_waiting),
    ON_STAGE(a_password_is_not_sent_in_the_clear),
    ON_STAGE(starttls_verifies_and_greets_again),
    ON_STAGE(a_certificate_for_another_host_is_refused),
    ON_STAGE(opportunistic_tls_takes_any_certificate),
    ON_STAGE(finding_10_only_a_verified_server_gets_the_password),
    ON_STAGE(required_tls_refuses_a_server_without_it),
    ON_STAGE(what_is_slipped_in_behind_starttls_is_dropped),
};

int main(void)
{
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
