// SPDX-License-Identifier: Apache-2.0
// When keys were last used, for an answer that shows them: what any process has written, or this
// one knows. Law: keys are shown also while Postgres is away, then without `last_used_at`.
#pragma once

#include "common/api/api.h"

typedef struct KeyLastUse {
    DbPool *pool;
    KeyUsage *usage;
} KeyLastUse;

// `keys` has their last use from now on. Maybe inside of the call.
typedef void (*KeysShown)(ApiCall *call, json_t *keys, void *ctx);
// Sets last_used_at (a time, or null: never since it is noted) of each object of the array `keys`,
// by its key_id; all are the call's tenant's.
void key_last_use_add(
    const KeyLastUse *last, ApiCall *call, json_t *keys, KeysShown done, void *ctx);
