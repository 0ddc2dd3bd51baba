// SPDX-License-Identifier: Apache-2.0
// FindList: one page of a list of notifications. The index names candidates, newest first, or
// history does where no index serves the filters; history has their rows; what fits is shown. When
// few of the candidates fit it asks again, a bounded number of times: then the page has fewer than
// `limit` and a cursor behind what was looked at.
#pragma once

#include "services/gateway/find/find_filters.h"
#include "services/gateway/find/find_projector.h"
#include "services/gateway/find/find_store.h"
#include "services/gateway/notifications/notification_view.h"

typedef struct FindContext {
    const FindStore *store;
    const MasterKey *master;
    const NotificationWait *waits;  // by channel
    DbPool *people;                 // where recipients and batches are
    const FindProjector *projector; // NULL: the index is off
} FindContext;

// fixed, value: as find_query_read. Leads to one answer. 404: of what the path names there is no
// notification, and it is no recipient or batch that there is.
void find_list_answer(ApiCall *call, const FindContext *context, FindFilter fixed, Str value);
// The page as the last member of an object: `before` is its text up to the member's value, and
// lives as long as the call. null: the index is off or away.
void find_list_embed(
    ApiCall *call, const FindContext *context, FindFilter fixed, Str value, Str before);
