// SPDX-License-Identifier: Apache-2.0
// A dead letter as it is read: which input, of which stage, and why. Pure. What a resend means is
// in resend_rules.h, how it is done in resend_group.h; DEAD itself: store.h.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/model/enums.h"
#include "stentor/v1/dead.pb-c.h"

typedef struct Letter {
    uint64_t sequence; // in DEAD
    int64_t stored_at_us;
    Str subject; // ntf.dead.<stage>.<tenant>
    Str stage, tenant;
    Str traceparent;                     // of its event; empty: none
    const Stentor__V1__DeadLetter *body; // NULL: it cannot be read, `unreadable` says why
    Error unreadable;
    const ProtobufCMessage *event; // NULL: not one of its subject's
    const char *notification_id;   // "": none could be read
    uint32_t attempts;             // that were made, as far as the dead letter shows
    const char *sealed;            // why its event is not opened; NULL: it is, or is not sealed
} Letter;

// Never fails: `unreadable` says what cannot be read. Everything lives in `arena`.
void letter_read(const BusMessage *message, Arena *arena, Letter *ret);

// The same letter with another payload (an event that was opened).
void letter_set_body(Letter *letter, const Stentor__V1__DeadLetter *body, Arena *arena);

// Whom it is for, under the key at hand when it was accepted. hash NULL: the letter has no
// address.
typedef struct LetterAddress {
    Channel channel;
    Category category;
    const uint8_t *hash; // SUPPRESSION_HASH_LEN bytes
} LetterAddress;

LetterAddress letter_address(const Letter *letter);
// The notification's end, `failed`, was published when the letter was written.
bool letter_end_reported(const Letter *letter);
// The letter is about a notification's own way to its recipient (a request, a rendered mail, a
// deferral), so sending it again brings that notification on; not about what a vendor said of it
// or what the history could not take.
bool letter_holds_work(const Letter *letter);
