// SPDX-License-Identifier: Apache-2.0
// The body of a SendGrid callback: a JSON array of flat event objects, each mapped to one of our
// statuses and to the suppression that follows from it. Pure. Events that change neither
// (processed, deferred ...) are only counted.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/enums.h"

// SendGrid posts at most 768 KB, and an event with its ids is above 150 bytes.
enum { SENDGRID_EVENTS_MAX = 10000, SENDGRID_TEXT_MAX = 512, SENDGRID_ADDRESS_MAX = 254 };

typedef struct SendgridEvent {
    Str id;              // sg_event_id; empty: none given
    Str notification_id; // "ntf_...", from smtp-id or the custom argument notification_id; empty:
                         // not ours or not given
    Str message_id;      // sg_message_id
    Status status;       // STATUS_NONE: it changes no status (unsubscribe)
    Outcome outcome;
    SuppressionReason suppress;  // SUPPRESSION_NONE: none follows
    Str email;                   // as the vendor got it; empty: not given, or not an address
    const uint8_t *address_hash; // in its place, of a mail; NULL: not known
    const char *reason_code;     // static; "" unless the status is an end
    Str enhanced_code;           // "5.1.1"
    Str text;      // the vendor's text, addresses masked, at most SENDGRID_TEXT_MAX bytes
    int64_t at_us; // 0: not given
} SendgridEvent;

typedef struct SendgridBatch {
    SendgridEvent *events;
    size_t count;
    size_t ignored;    // of types that change nothing
    size_t unreadable; // not an object, or without a type
} SendgridBatch;

// Everything in *ret lives in `arena`. ERROR_PERMANENT when the body is not a JSON array.
bool sendgrid_events_parse(Str body, Arena *arena, SendgridBatch *ret, Error *err);
