// SPDX-License-Identifier: Apache-2.0
// What the figures' routes share: a span, whose it is, and words of numbers. Pure but for answers.
#pragma once

#include <jansson.h>

#include "services/gateway/figures/figures_api.h"

typedef struct FiguresCall {
    ApiCall *call;
    int64_t since_us, before_us;
    Str by;
} FiguresCall;

// From `from`, `to` (RFC 3339; default: the last `hours` up to now) and `by`, one of the words
// (NULL: none is taken). NULL: answered.
FiguresCall *figures_read(ApiCall *call, int64_t hours, const char *words);
// Adds of_tenant, since, before. all: an operator's key without a tenant asks for all.
void figures_add(DbParams *p, const FiguresCall *figures, bool all);
// The frame of the answer: from, to, and `by`, if there is one.
json_t *figures_frame(const FiguresCall *figures);
json_t *figures_amount(int64_t micros); // "0.0075", so that no reader makes a binary fraction of it
json_t *figures_share(int64_t part, int64_t of); // 0.0031; null of nothing

// Each adds its routes.
void figures_usage_add(Api *api, FiguresApi *figures);
void figures_sending_add(Api *api, FiguresApi *figures);
