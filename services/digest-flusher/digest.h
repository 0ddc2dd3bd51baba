// SPDX-License-Identifier: Apache-2.0
// Digest: built from a frozen window. Pure: the key is an argument, the time is the window's, and
// all ids are derived from the window's, so however often it is built, it is one digest. A single
// item is sent as itself; of several the newest gives the address (resealed for the digest), the
// recipient, the priority and the locale; the window gives the template.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/seal.h"
#include "stentor/v1/request.pb-c.h"

enum {
    DIGEST_LIST_MAX = 50,           // items that a digest shows; digest_total counts all
    DIGEST_LIST_BYTES = 600 * 1024, // of their requests: the event stays below EVENT_BYTES_MAX
};

typedef struct DigestWindow {
    Str tenant;
    Str window_id;
    int64_t flush_at_us;
    int64_t frozen_at_us; // before flush_at_us if the recipient no longer wanted a digest
    Str template_key;
    Str template_version;
    Str locale;  // when the newest item names none
    Str verdict; // why its items are suppressed; empty: they are not
    uint64_t live;
    const Stentor__V1__NotificationRequest **items; // those that are listed, oldest first
    size_t item_count;
    const Stentor__V1__NotificationRequest *newest; // NULL: no item is live
} DigestWindow;

typedef struct Digest {
    Str tenant;
    Str window_id;
    char id[ID_SIZE]; // empty: there is no digest, and the items go out as themselves or suppressed
    char event_id[EVENT_ID_SIZE];
    char status_id[EVENT_ID_SIZE]; // of its `queued`
    char subject[SUBJECT_SIZE];
    Str payload; // packed NotificationRequest
    Str head;    // the same without address and items: for its status
} Digest;

// Whether it becomes a digest: it has several items and no verdict ends them.
bool digest_wanted(const DigestWindow *window);

// `key` unseals the newest item's address; NULL (destroyed): no digest, and the renderer reports
// why for each item. ERROR_PERMANENT: the address cannot be unsealed.
bool digest_build(
    const DigestWindow *window, DataKey *key, Arena *arena, Digest *ret_digest, Error *err);
