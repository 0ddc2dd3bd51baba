// SPDX-License-Identifier: Apache-2.0
// Vendors' callbacks as they came, opened under the tenant's key: from INBOUND and its segments.
// Blocking.
#pragma once

#include "common/content/content_session.h"

typedef struct CallbackQuery {
    const char *tenant;
    const char *notification_id; // only bodies that hold this text; NULL: all
    int64_t from_us, to_us;      // to_us 0: to the end
    size_t limit;                // at least 1
} CallbackQuery;

typedef struct Callback {
    const char *event_id, *vendor;
    const char *key; // the name of the one that fitted; empty: of before there were names
    uint64_t sequence;
    int64_t received_us;
    Str body;
} Callback;

typedef struct Callbacks {
    Callback *items; // at most the limit, oldest first; in the session's arena
    size_t count;
    size_t unreadable; // not a callback, or not sealed under a key of the file
    bool more;         // the limit ended the search
} Callbacks;

bool callback_read(ContentSession *session, const CallbackQuery *query, Callbacks *ret, Error *err);
