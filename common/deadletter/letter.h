// SPDX-License-Identifier: Apache-2.0
// A dead letter as it is read: what was buried, by whom and why. Pure. What sending it again means
// is in resend_rules.h, who does it in resend_group.h; DEAD itself: store.h.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "stentor/v1/dead.pb-c.h"

typedef struct Letter {
    uint64_t sequence; // in DEAD
    int64_t stored_at_us;
    Str subject; // ntf.dead.<stage>.<tenant>
    Str stage, tenant;
    Str traceparent;                     // of the buried event; empty: none
    const Stentor__V1__DeadLetter *body; // NULL: it cannot be read, `unreadable` says why
    Error unreadable;
    const ProtobufCMessage *event; // the buried event; NULL: not one of its subject's
    const char *notification_id;   // "": none could be read
    uint32_t attempts;             // that were made, as far as the letter tells
} Letter;

// Never fails: what cannot be read is told in the letter. Everything lives in `arena`.
void letter_read(const BusMessage *message, Arena *arena, Letter *ret);

// The notification's end, `failed`, was published when the letter was written.
bool letter_end_reported(const Letter *letter);
// The letter is about a notification's own way to its recipient (a request, a rendered mail, a
// deferral), so sending it again brings that notification on; not about what a vendor said of it
// or what the history could not take.
bool letter_holds_work(const Letter *letter);
