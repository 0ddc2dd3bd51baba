// SPDX-License-Identifier: Apache-2.0
// Which addresses are taken by LMTP, and the storing of their mail on INBOUND, sealed under the
// tenant's key; 250 only after JetStream has it. Taken are b+<token>@<bounce domain> with a token
// that was made here, and at the same domains the local parts that the operator names (fbl,
// bounces), for feedback loops and for bounces of mail without a return path of its own. Law: what
// is not for a tenant is not kept, and nothing is parsed here.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/bounce_token.h"
#include "common/codec/opt_out.h"
#include "common/service/metrics.h"
#include "services/webhook-receiver/lmtp/bounce_domains.h"
#include "services/webhook-receiver/lmtp/lmtp_server.h"

enum {
    MAIL_SIZE_MAX = 10 * 1024 * 1024, // of a mail; beyond it 552
    // Of these the beginning is kept, because a message of JetStream has at most 1 MB. Behind it
    // stand only parts of the mail that came back: the machine-readable part is the second one (RFC
    // 3462).
    MAIL_KEPT_MAX = 768 * 1024,
    MAILS_WAITING_MAX = 64, // for JetStream's ack; beyond it 451
    MAIL_PROOFS_MAX = 20,   // tokens that are checked in a mail without one in its address
};

// What INBOUND calls the vendor of a mail.
#define MAIL_VENDOR "mail"
// The header that is put before a stored mail: the address that it came to, in <>.
#define MAIL_DELIVERED_TO "Delivered-To: "

typedef struct MailIntake {
    Bus *bus;
    MasterKey *master;
    const BounceDomains *domains;
    BounceKey bounce;
    OptOutKey opt_out;
    Str local_parts; // "fbl,bounces"
    bool (*ready)(void *ctx);
    void *ready_ctx;
    Metric *taken;
    Metric *refused;
    size_t waiting;
} MailIntake;

LmtpHandler mail_intake_handler(MailIntake *intake);

// The tenant that the mail is of by proof: the first token of a return path, or opt-out token, that
// stands in its text and was made here. Empty: there is none.
Str mail_intake_tenant_of(const MailIntake *intake, Str text, int64_t now_us, Arena *arena);
