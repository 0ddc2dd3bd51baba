// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates/{key}/{version}/activate and /archive: a version's way from draft to active to
// archived. Its words stay as they are; only the tenant's own versions are changed.
#pragma once

#include "services/gateway/templates/templates_api.h"

void templates_life_add(Api *api, TemplatesApi *templates);
