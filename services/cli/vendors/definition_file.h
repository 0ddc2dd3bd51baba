// SPDX-License-Identifier: Apache-2.0
// The definition of a vendor as a file of JSON.
#pragma once

#include <jansson.h>

#include "common/base/error.h"

// NULL: ERROR_USAGE names file, line and column. The caller's.
json_t *definition_file(const char *path, Error *err);
