// SPDX-License-Identifier: Apache-2.0
// GET /v1/openapi.json: the document of all routes of gateway and ingest, which the build made of
// the files beside this one (README.md). GET /v1/problems/{type}: what a refusal means, and what to
// do. Anybody may read them. Also lists the routes that
// are answered without a key by other parts (common/api/api.h, ApiOther).
#pragma once

#include "common/api/api.h"

void openapi_api_add(Api *api);
