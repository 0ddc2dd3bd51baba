// SPDX-License-Identifier: Apache-2.0
// GET /v1/notifications, /v1/recipients/{id}/notifications, /v1/batches/{id}/notifications: lists
// by the search index and history. What is asked and how it is answered: FIND.md.
#pragma once

#include "services/gateway/find/find_list.h"

void find_api_add(Api *api, FindContext *context); // borrows it
