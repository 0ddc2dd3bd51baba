// SPDX-License-Identifier: Apache-2.0
// The amounts of an order event that was written in JSON, under the names that the same event has in
// protobuf: `total` of total_micros or totalMoney, `refund`, and the `price` of each of its `lines`.
// So one template serves the saga's commands and an order service's own. Pure.
#pragma once

#include <jansson.h>

#include "common/base/str.h"

// Adds what is missing; changes nothing that is there. `type` is the plain one; of any other event
// than one of an order nothing is added.
void order_data_complete(Str type, json_t *data);
