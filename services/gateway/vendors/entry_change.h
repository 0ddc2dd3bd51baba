// SPDX-License-Identifier: Apache-2.0
// A change of one of the entries of this folder (common/api/config_change.h).
#pragma once

#include "common/api/api_json.h"
#include "common/api/config_change.h"
#include "services/gateway/vendors/vendors_api.h"

// Of a call whose context is the VendorsApi; 409 `entry-changed` without a precondition.
ConfigChange *entry_change_new(ApiCall *call, size_t size, const char *kind, Str key);
// A check's error, whose text begins with the field: "domain: not in lower case ...".
void entry_fail(ApiBody *body, const Error *err);
