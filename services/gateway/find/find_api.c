// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/find/find_api.h"

static void list_notifications(ApiCall *call)
{
    find_list_answer(call, call->ctx, FIND_FILTERS, STR_EMPTY);
}

static void list_of_recipient(ApiCall *call)
{
    find_list_answer(call, call->ctx, FIND_BY_RECIPIENT, call->params[0]);
}

static void list_of_batch(ApiCall *call)
{
    find_list_answer(call, call->ctx, FIND_BY_BATCH, call->params[0]);
}

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/notifications", SCOPE_NOTIFICATIONS_READ, list_notifications, "limit cursor recipient_id address correlation_id source_event batch_id template vendor_message_id status channel category from to", false},
    {"GET", "/v1/recipients/{}/notifications", SCOPE_NOTIFICATIONS_READ, list_of_recipient, "limit cursor template status channel category from to", false},
    {"GET", "/v1/batches/{}/notifications", SCOPE_NOTIFICATIONS_READ, list_of_batch, "limit cursor template status channel category from to", false},
};
// clang-format on

void find_api_add(Api *api, FindContext *context)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], context);
}
