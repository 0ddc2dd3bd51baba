// SPDX-License-Identifier: Apache-2.0
// One part of a file, sent until the API has answered: a part must be one that may come twice.
#pragma once

#include "services/cli/api_client.h"

// The answer is a 200. No answer, a 429 or a 5xx: the same again, for `patience_s` at most.
bool upload_part(
    ApiClient *client, const char *method, const char *path, Str body, int64_t patience_s,
    ApiAnswer *ret, Error *err);
