// SPDX-License-Identifier: Apache-2.0
// What a bounce (RFC 3464) or a complaint (RFC 5965) means. Nothing that a mail says is believed
// but what was made here: the return path's token, the opt-out token in the headers that came back.
//   whose:   the return path's token (of the mail's own recipient, of the envelope id, of the
//            report's or the returned mail's sender), else the opt-out token: proof. Else the
//            envelope id or the Message-ID, which only who got the mail can know: a claim.
//   address: only the one that the notification went to, known by the token's mark or the opt-out
//            token's hash, is suppressed, and only by proof; a failure that is reported of another
//            address changes nothing.
// Pure; time is an argument.
#pragma once

#include "common/codec/bounce_token.h"
#include "common/codec/opt_out.h"
#include "common/vendor/vendor_callback.h"
#include "services/webhook-receiver/mail/mail_report.h"

typedef struct MailKeys {
    BounceKey bounce;
    OptOutKey opt_out;
    HashKeys hash; // addresses are known by any of them
} MailKeys;

typedef struct MailOrigin {
    Str tenant;       // whose address the mail came to
    Str delivered_to; // that address
    int64_t received_at_us;
} MailOrigin;

// Everything in *ret lives in `arena`. Each event names a notification and has an id that is the
// same for ever. What changes nothing (delayed, relayed, another address, no mail of ours) is
// counted as ignored, a mail without a report (a vacation's answer) as unreadable.
void mail_events(
    const MailReport *report, const MailOrigin *origin, const MailKeys *keys, Arena *arena,
    CallbackBatch *ret);
