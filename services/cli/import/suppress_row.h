// SPDX-License-Identifier: Apache-2.0
// Suppressions as lines of POST /v1/suppressions/import. A CSV's header names its columns, address
// or address_hash among them; those that the API does not know are passed over. What a value must
// be, the API checks. Pure.
#pragma once

#include "services/cli/import/record_file.h"

extern const RecordKind suppress_records;
