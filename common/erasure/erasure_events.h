// SPDX-License-Identifier: Apache-2.0
// Domain events that ask for an erasure: iam.user.deleted.v1 of a tenant's own applications. Each
// becomes a request for every recipient with that identity. The request's id is derived from the
// event and the recipient, so an event that is read twice is the same erasures. It blocks.
#pragma once

#include <jansson.h>

#include "common/codec/master_key.h"
#include "common/erasure/erasure_request.h"

#define ERASURE_EVENT_TYPE "iam.user.deleted.v1"

typedef struct ErasureEvents {
    uint64_t read;    // events of the type
    uint64_t asked;   // that became requests, or were before
    uint64_t unknown; // of whom nothing is known
    uint64_t refused; // that name no user
    uint64_t failed;  // that have to be read again
    // Given: a line for each failure.
    void (*on_failure)(void *ctx, const char *text);
    void *ctx;
} ErasureEvents;

// The user's id in the event's data: "user_id", "userId" or "id", a text or a whole number; an
// identity of type user. false: it has none.
bool erasure_event_user(const json_t *data, Arena *arena, Str *ret);
// Everything on EVENTS behind what was read before. A message that cannot be read is counted as
// refused, and passed over. One whose request fails does not hold up those behind it: it and they
// are read again by the next call. false: EVENTS or the position could not be read.
bool erasure_take_events(
    PGconn *pg, Session *session, MasterKey *master, Arena *arena, ErasureEvents *ret, Error *err);
