// SPDX-License-Identifier: Apache-2.0
// ResendErrorEmail as an item: whose mail, by whose word, and how far it goes. Pure.
#pragma once

#include "common/domain/domain_event.h"

#define RESEND_EVENT_TYPE "ResendErrorEmail"

enum { RESEND_REQUESTED_BY_MAX = 128 };

typedef struct ResendRequest {
    Str tenant;
    Str identity;        // of the event; the same event is the same item
    Str notification_id; // "ntf_" and a ULID; empty: any, with dead_letter
    int64_t created_us;  // the time in it; 0: none
    Str requested_by;    // empty: not said
    bool may_double, ignore_expiry;
    Str letter; // the event again, as its dead letter keeps it: needs no headers to be read
    uint64_t dead_letter; // its sequence in DEAD; 0: the last one of the notification
} ResendRequest;

// Everything lives in `arena` or in the input. ERROR_PERMANENT names the field.
bool resend_event_read(const DomainInput *input, Arena *arena, ResendRequest *ret, Error *err);
