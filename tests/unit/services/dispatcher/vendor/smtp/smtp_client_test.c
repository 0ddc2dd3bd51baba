// SPDX-License-Identifier: Apache-2.0
// A connection that refuses a move, as in a release build: it is closed, and no mail is lost or
// taken for sent. Over a real socket; smtp_pool_test.c has everything else.
#include "services/dispatcher/vendor/smtp/smtp_client_internal.h"
#include "tests/unit/common/base/states/states_walk.h"
#include "tests/unit/services/dispatcher/smtp_script.h"

enum { WAIT_MS = 8000 };

typedef struct Stage {
    uv_loop_t loop;
    Script script;
    SmtpOptions options;
    SmtpClient *client;
    Mail mail;
    const Mail *back, *lost;
    bool ready, useful, late;
    Error why; // of its end
    uv_timer_t watchdog;
} Stage;

static void on_ready(void *ctx)
{
    ((Stage *)ctx)->ready = true;
}

static void on_lost(void *ctx, Mail *mail)
{
    ((Stage *)ctx)->lost = mail;
}

static void on_back(void *ctx, Mail *mail)
{
    ((Stage *)ctx)->back = mail;
}

static void on_closed(void *ctx, SmtpClient *client, bool useful, const Error *err)
{
    Stage *stage = ctx;
    assert_ptr_equal(client, stage->client);
    stage->client = NULL;
    stage->useful = useful;
    stage->why = *err;
}

static Mail *no_mail(void *ctx)
{
    (void)ctx;
    return NULL;
}

static const SmtpClientHooks hooks = {
    .session = {.next = no_mail},
    .on_ready = on_ready,
    .on_lost = on_lost,
    .on_back = on_back,
    .on_closed = on_closed,
};

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
        .host = "127.0.0.1",
        .mails_max = 1000,
        .connect_ms = 2000,
        .command_ms = 2000,
        .data_ms = 2000,
        .idle_ms = 5000,
    };
    snprintf(stage->options.port, sizeof stage->options.port, "%d", stage->script.port);
    uv_timer_init(&stage->loop, &stage->watchdog);
    stage->watchdog.data = stage;
    uv_timer_start(&stage->watchdog, on_watchdog_timer, WAIT_MS, 0);
    states_survive(true);
    stage->client = smtp_client_new(&(SmtpClientContext){
        .loop = &stage->loop, .options = &stage->options, .hooks = &hooks, .ctx = stage});
    *state = stage;
    return 0;
}

static int stage_down(void **state)
{
    Stage *stage = *state;
    states_survive(false);
    uv_close((uv_handle_t *)&stage->watchdog, NULL);
    script_stop(&stage->script);
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&stage->loop) == 0 && !stage->late ? 0 : -1;
    script_done(&stage->script);
    free(stage);
    return status;
}

static void run_to(Stage *stage, SmtpClientState reached)
{
    while (stage->client != NULL && stage->client->state != reached && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
}

static void run_to_its_end(Stage *stage)
{
    while (stage->client != NULL && !stage->late) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    assert_null(stage->client);
}

static void a_connection_that_refuses_a_move_closes_and_gives_its_mail_back(void **state)
{
    Stage *stage = *state;
    run_to(stage, SMTP_CLIENT_CONNECTING);
    stage->client->session.envelope = &stage->mail;
    stage->client->state = SMTP_CLIENT_READY; // it is not even connected
    run_to_its_end(stage);
    assert_string_equal(
        strstr(stage->why.text, "the connection"), "the connection was in an unexpected state");
    assert_int_equal(stage->why.kind, ERROR_TRANSIENT);
    assert_ptr_equal(stage->back, &stage->mail);
    assert_false(stage->useful || stage->ready);
}

// The dot of the mail is gone, so nothing but "unknown" is true of it.
static void a_session_that_refuses_a_move_closes_and_its_mail_is_lost(void **state)
{
    Stage *stage = *state;
    run_to(stage, SMTP_CLIENT_READY);
    SmtpClient *client = stage->client;
    client->session.sending = &stage->mail;
    client->dot_at = client->wire_total;
    client->session.phase = SMTP_AUTH;
    smtp_session_encrypted(&client->session); // no handshake was under way
    assert_int_equal(client->session.phase, SMTP_FAILED);
    smtp_client_tick(client, UINT64_MAX);
    run_to_its_end(stage);
    assert_ptr_equal(stage->lost, &stage->mail);
    assert_null(stage->back);
    assert_int_equal(stage->script.mail_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_connection_that_refuses_a_move_closes_and_gives_its_mail_back, stage_up, stage_down),
        cmocka_unit_test_setup_teardown(
            a_session_that_refuses_a_move_closes_and_its_mail_is_lost, stage_up, stage_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
