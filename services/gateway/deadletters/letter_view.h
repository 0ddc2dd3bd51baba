// SPDX-License-Identifier: Apache-2.0
// A dead letter as the API shows it: never its event, whose fields are for operators with the keys.
// Pure.
#pragma once

#include <jansson.h>

#include "services/gateway/deadletters/letter_filter.h"

// In a list.
json_t *letter_view(const Letter *letter, const ResendRules *rules, Arena *arena);
// By itself: with its attempts, and where its event came from.
json_t *letter_view_whole(const Letter *letter, const ResendRules *rules, Arena *arena);
// Whatever stands there: a subject's token or a vendor's reply may be no UTF-8.
json_t *letter_text(Str text);
