// SPDX-License-Identifier: Apache-2.0
// What a recipient wrote back, as an event for the tenant's applications: an InboundReply on
// REPLIES. Pure. Law: the text and the number are sealed; the id is the vendor's message's, so that
// what a vendor sends again, for up to a week, is one event.
#pragma once

#include "services/webhook-receiver/correlate.h"

typedef struct ReplyKeys {
    DataKey *seal; // the tenant's own
    Str hash;      // of addresses
} ReplyKeys;

// "message", "stop", "start", "help".
const char *reply_kind(ReplyWord word);
// Of an event with a reply; all of *ret lives in `arena`.
bool reply_event(
    const CallbackEvent *event, const CallbackOrigin *origin, const ReplyKeys *keys, Arena *arena,
    BusOut *ret, Error *err);
