// SPDX-License-Identifier: Apache-2.0
// Members of a batch as lines of PUT /v1/batches/{id}/members. A CSV's header names its columns:
// to, name, recipient_id, locale, consent_source, consent_at; each other one is a variable of that
// name ("variables.name" for one that is called like one of these). What only the API knows, it
// checks. Pure.
#pragma once

#include "services/cli/import/record_file.h"

enum { MEMBER_LINE_MAX = 128 * 1024 };

extern const RecordKind member_records;
