// SPDX-License-Identifier: Apache-2.0
// Events of FEED: what goes into an in-app inbox, and what its recipient does there. Ids are
// derived from what caused the event, so a repeat adds nothing. Pure.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "stentor/v1/feed.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"

enum {
    FEED_RECIPIENT_LEN = ADDRESS_HASH_LEN,
    FEED_EVENT_MAX = 60 * 1024, // bytes
    FEED_STATE_IDS_MAX = 100,   // notifications that one state names
};

// Whose inbox it is: by the in-app address alone, so that a request to the address and one to the
// recipient who has it are in the same. By the oldest hash key: a rotation moves no inbox.
void feed_recipient(
    const MasterKey *master, Str tenant, Str address, uint8_t out[FEED_RECIPIENT_LEN]);

// The item of a rendered notification, packed; its content is sealed under `key`, the recipient's.
// All in `arena`.
bool feed_item_pack(
    const Stentor__V1__Rendered *rendered, const Stentor__V1__InappContent *content,
    const uint8_t recipient[FEED_RECIPIENT_LEN], DataKey *key, Arena *arena, Str *ret, Error *err);
// Its event's id: of the notification, not of the attempt.
void feed_item_id(Str notification_id, char out[EVENT_ID_SIZE]);

// A state as an event for the bus; `id` is its event id. What the event points to must outlive it.
typedef struct FeedStateSpec {
    Str tenant;
    const uint8_t *recipient;
    const char *event_id;
    int64_t at_us;
    const Stentor__V1__FeedState *state;
} FeedStateSpec;

bool feed_state_event(const FeedStateSpec *spec, Arena *arena, BusOut *ret, Error *err);

// A removal likewise (an erasure).
bool feed_removal_event(
    Str tenant, const char *event_id, int64_t at_us, const Stentor__V1__FeedRemoval *removal,
    Arena *arena, BusOut *ret, Error *err);

// The content of an item. ERROR_PERMANENT: altered, or sealed under another key.
const Stentor__V1__InappContent *feed_content_open(
    DataKey *key, Str tenant, Str notification_id, const Stentor__V1__Sealed *sealed, Arena *arena,
    Error *err);
