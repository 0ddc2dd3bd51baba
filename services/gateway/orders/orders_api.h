// SPDX-License-Identifier: Apache-2.0
// GET /v1/orders and /v1/orders/{id}: what the order saga knows of orders, with the notifications
// of one (by its correlation id, from the search index). Who ordered is sealed, and not shown.
#pragma once

#include "services/gateway/find/find_list.h"

typedef struct OrdersApi {
    DbPool *pool;
    const FindContext *find;
} OrdersApi;

void orders_api_add(Api *api, OrdersApi *orders); // borrows it
