// SPDX-License-Identifier: Apache-2.0
// What resending a dead letter means: the same for an operator (`stentor dlq resend`) and for an
// event (ResendErrorEmail). Pure: time is an argument.
//
// Law: whoever sends a letter again publishes what letter_resend() says, and deletes the letter
// once JetStream has it. Killed between the two, the letter is still there, and sending it again
// publishes the same event id and the same attempt: JetStream drops that within its duplicate
// window, and the dispatcher's ledger refuses a second mail after it
// (tests/integration/operating/test_dlq.py: test_a_letter_that_is_sent_again_twice_makes_one_mail).
#pragma once

#include "common/deadletter/letter.h"
#include "common/model/suppressions.h"

typedef struct ResendRules {
    bool may_double;    // also what may have been sent already
    bool ignore_expiry; // an expired mail loses its expiry
    bool by_tenant; // only what brings the tenant's own work on: a request, a mail, a deferral, an
                    // event
    int64_t now_us;
    // What is known to be suppressed, at least of the letter's own address (resend_group_look_up);
    // NULL: nothing. What it lacks the dispatcher refuses, with another dead letter.
    const Suppressions *suppressions;
} ResendRules;

typedef struct Resend {
    BusOut out;
    uint32_t attempt; // that will be made; 0: the event goes as it was
    bool own_id;      // under the id that it had: a duplicate was not stored
} Resend;

// What is published to have the letter's event handled again. The same letter always gives the same
// event id and attempt. Everything lives in `arena` or in the letter. ERROR_PERMANENT says why it
// is not sent again, with the way out.
bool letter_resend(
    const Letter *letter, const ResendRules *rules, Arena *arena, Resend *ret, Error *err);
