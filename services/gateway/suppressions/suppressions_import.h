// SPDX-License-Identifier: Apache-2.0
// POST /v1/suppressions/import: NDJSON, at most SUPPRESSIONS_IMPORT_LINES lines a request. A line
// that is wrong gets its error, the others are stored; of an address's lines the last one counts. A
// line that says what stands already (its reason and its end) is left as it is, so a list that is
// imported again and again, or a request that is repeated (no answer, a 503), stores nothing.
#pragma once

#include "services/gateway/suppressions/suppressions_api.h"

enum { SUPPRESSIONS_IMPORT_LINES = 1000 };

void suppressions_import(ApiCall *call);
