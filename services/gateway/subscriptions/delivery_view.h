// SPDX-License-Identifier: Apache-2.0
// A delivery of a webhook as the API shows it. Pure.
#pragma once

#include <jansson.h>

#include "services/gateway/subscriptions/delivery_rows.h"

json_t *delivery_view(const DeliveryRow *row);
// With its body and the beginning of the endpoint's last answer.
json_t *delivery_view_whole(const DeliveryRow *row);
