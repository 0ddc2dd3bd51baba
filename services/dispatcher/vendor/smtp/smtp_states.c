// SPDX-License-Identifier: Apache-2.0
// The tables of an SMTP connection's two machines; their diagrams are in smtp_client.h (the
// connection) and smtp_session.h (the protocol on it).
#include "common/base/states/states.h"
#include "services/dispatcher/vendor/smtp/smtp_client.h"

// clang-format off
static const uint32_t client_moves[SMTP_CLIENT_STATE_COUNT] = {
    [SMTP_CLIENT_NEW]        = STATE_BIT(SMTP_CLIENT_LOOKING_UP) | STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_LOOKING_UP] = STATE_BIT(SMTP_CLIENT_CONNECTING) | STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_CONNECTING] = STATE_BIT(SMTP_CLIENT_SETTING_UP) | STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_SETTING_UP] = STATE_BIT(SMTP_CLIENT_READY)      | STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_READY]      = STATE_BIT(SMTP_CLIENT_QUITTING)   | STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_QUITTING]   = STATE_BIT(SMTP_CLIENT_CLOSING),
    [SMTP_CLIENT_CLOSING]    = STATE_BIT(SMTP_CLIENT_CLOSED),
    [SMTP_CLIENT_CLOSED]     = 0,
};
static const char *const client_names[SMTP_CLIENT_STATE_COUNT] = {
    [SMTP_CLIENT_NEW] = "new", [SMTP_CLIENT_LOOKING_UP] = "looking up", [SMTP_CLIENT_CONNECTING] = "connecting",
    [SMTP_CLIENT_SETTING_UP] = "setting up", [SMTP_CLIENT_READY] = "ready", [SMTP_CLIENT_QUITTING] = "quitting",
    [SMTP_CLIENT_CLOSING] = "closing", [SMTP_CLIENT_CLOSED] = "closed",
};
static const States client_states = {"smtp client", client_names, client_moves, SMTP_CLIENT_STATE_COUNT};

static const uint32_t phase_moves[SMTP_PHASE_COUNT] = {
    [SMTP_GREETING]  = STATE_BIT(SMTP_EHLO) | STATE_BIT(SMTP_FAILED),
    [SMTP_EHLO]      = STATE_BIT(SMTP_HELO) | STATE_BIT(SMTP_STARTTLS) | STATE_BIT(SMTP_AUTH) | STATE_BIT(SMTP_READY) | STATE_BIT(SMTP_FAILED),
    [SMTP_HELO]      = STATE_BIT(SMTP_READY) | STATE_BIT(SMTP_FAILED),
    [SMTP_STARTTLS]  = STATE_BIT(SMTP_HANDSHAKE) | STATE_BIT(SMTP_AUTH) | STATE_BIT(SMTP_READY) | STATE_BIT(SMTP_FAILED),
    [SMTP_HANDSHAKE] = STATE_BIT(SMTP_GREETING) | STATE_BIT(SMTP_EHLO) | STATE_BIT(SMTP_FAILED),
    [SMTP_AUTH]      = STATE_BIT(SMTP_READY) | STATE_BIT(SMTP_FAILED),
    [SMTP_READY]     = STATE_BIT(SMTP_QUIT) | STATE_BIT(SMTP_FAILED),
    [SMTP_QUIT]      = STATE_BIT(SMTP_FAILED),
    [SMTP_FAILED]    = 0,
};
static const char *const phase_names[SMTP_PHASE_COUNT] = {
    [SMTP_GREETING] = "greeting", [SMTP_EHLO] = "EHLO", [SMTP_HELO] = "HELO", [SMTP_STARTTLS] = "STARTTLS",
    [SMTP_HANDSHAKE] = "handshake", [SMTP_AUTH] = "AUTH", [SMTP_READY] = "ready", [SMTP_QUIT] = "QUIT",
    [SMTP_FAILED] = "failed",
};
static const States phase_states = {"smtp session", phase_names, phase_moves, SMTP_PHASE_COUNT};
// clang-format on

bool smtp_client_move(SmtpClientState *state, SmtpClientState next, const char *host)
{
    if (!states_step(&client_states, *state, next, str_from(host))) {
        return false;
    }
    *state = next;
    return true;
}

bool smtp_phase_move(SmtpPhase *phase, SmtpPhase next, const char *host)
{
    if (!states_step(&phase_states, *phase, next, str_from(host))) {
        return false;
    }
    *phase = next;
    return true;
}
