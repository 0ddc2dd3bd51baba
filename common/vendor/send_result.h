// SPDX-License-Identifier: Apache-2.0
// What became of one call to a vendor. Law: a send is unsent, answered or unknown at a named
// vendor; only a SEND_UNKNOWN may have reached the recipient without our knowing.
#pragma once

#include "common/base/str.h"
#include "common/model/rules/ladder.h"

typedef enum SendState {
    SEND_ANSWERED, // the vendor took or rejected it, see code, text and reply
    SEND_UNSENT,   // surely not sent: the vendor could not be reached until give_up_at_ms, or the
                   // claim ended before it was handed over
    SEND_UNKNOWN,  // handed over whole, and no answer came that settles it
    SEND_RELEASED, // surely not sent: draining
} SendState;

// Slices are valid during the call that hands the result over; text is one line of UTF-8 with
// addresses masked.
typedef struct SendResult {
    SendState state;
    bool waited;       // SEND_UNSENT: its turn never came, which says nothing about the vendor
    ReplyClass reply;  // SEND_ANSWERED
    bool of_recipient; // SEND_ANSWERED: it is about this recipient alone, and says nothing of the
                       // vendor or its limit
    uint32_t retry_after_ms;
    Str code, enhanced, text;
    Str vendor_message_id; // empty: the vendor gives none, or it is the mail's Message-ID
    uint32_t segments;     // that the vendor counts; 0: it says none
    int64_t cost_micros;   // millionths of `currency`; 0: it says none
    Str currency;          // ISO 4217
} SendResult;
