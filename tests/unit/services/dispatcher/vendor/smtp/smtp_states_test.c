// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/smtp/smtp_client.h"
#include "tests/unit/common/base/states/states_walk.h"

// As drawn in smtp_client.h.
static const StateRow CLIENT[] = {
    [SMTP_CLIENT_NEW] = {"new", "looking up, closing"},
    [SMTP_CLIENT_LOOKING_UP] = {"looking up", "connecting, closing"},
    [SMTP_CLIENT_CONNECTING] = {"connecting", "setting up, closing"},
    [SMTP_CLIENT_SETTING_UP] = {"setting up", "ready, closing"},
    [SMTP_CLIENT_READY] = {"ready", "quitting, closing"},
    [SMTP_CLIENT_QUITTING] = {"quitting", "closing"},
    [SMTP_CLIENT_CLOSING] = {"closing", "closed"},
    [SMTP_CLIENT_CLOSED] = {"closed", ""},
};

// As drawn in smtp_session.h.
static const StateRow PHASES[] = {
    [SMTP_GREETING] = {"GREETING", "EHLO, FAILED"},
    [SMTP_EHLO] = {"EHLO", "READY, HELO, AUTH, STARTTLS, FAILED"},
    [SMTP_HELO] = {"HELO", "READY, FAILED"},
    [SMTP_STARTTLS] = {"STARTTLS", "AUTH, READY, HANDSHAKE, FAILED"},
    [SMTP_HANDSHAKE] = {"HANDSHAKE", "GREETING, EHLO, FAILED"},
    [SMTP_AUTH] = {"AUTH", "READY, FAILED"},
    [SMTP_READY] = {"READY", "QUIT, FAILED"},
    [SMTP_QUIT] = {"QUIT", "FAILED"},
    [SMTP_FAILED] = {"FAILED", ""},
};

static bool move_client(unsigned *state, unsigned next)
{
    SmtpClientState at = (SmtpClientState)*state;
    bool moved = smtp_client_move(&at, (SmtpClientState)next, "mail.example.com");
    *state = at;
    return moved;
}

static bool move_phase(unsigned *state, unsigned next)
{
    SmtpPhase at = (SmtpPhase)*state;
    bool moved = smtp_phase_move(&at, (SmtpPhase)next, "mail.example.com");
    *state = at;
    return moved;
}

static void a_connection_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){CLIENT, SMTP_CLIENT_STATE_COUNT, move_client});
}

static void a_session_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){PHASES, SMTP_PHASE_COUNT, move_phase});
}

static void a_session_that_refuses_a_move_has_failed(void **state)
{
    (void)state;
    SmtpOptions options = {.host = "mail.example.com", .helo = "stentor"};
    SmtpHooks hooks = {0};
    SmtpSession session;
    smtp_session_init(&session, &options, &hooks, NULL);
    states_survive(true);
    session.phase = SMTP_AUTH;
    smtp_session_encrypted(&session); // without a handshake
    states_survive(false);
    assert_int_equal(session.phase, SMTP_FAILED);
    smtp_session_done(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_moves_as_drawn_and_not_otherwise),
        cmocka_unit_test(a_session_moves_as_drawn_and_not_otherwise),
        cmocka_unit_test(a_session_that_refuses_a_move_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
