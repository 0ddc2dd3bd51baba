// SPDX-License-Identifier: Apache-2.0
// Which API keys of all tenants expire soon, as gauges.
#pragma once

#include "common/api/auth.h"
#include "common/service/metrics.h"

// Both are borrowed, for as long as the metrics are printed.
void key_expiry_register(Metrics *metrics, Auth *auth);
