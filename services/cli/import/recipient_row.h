// SPDX-License-Identifier: Apache-2.0
// People as lines of POST /v1/recipients/import. What only the API knows (addresses, zones), it
// checks. Pure.
#pragma once

#include "services/cli/import/record_file.h"

extern const RecordKind recipient_records;
