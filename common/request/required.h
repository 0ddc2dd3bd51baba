// SPDX-License-Identifier: Apache-2.0
// The required variables of a template version, packed: dotted paths ("order.id"), each with its
// NUL, and an empty one at the end. The renderer fails a notification that lacks one; with this a
// caller learns of it before the notification is accepted. Pure.
#pragma once

#include <jansson.h>

#include "common/request/request.h"
#include "stentor/v1/config.pb-c.h"

// On the heap; NULL: none. Without those that the renderer sets itself (unsubscribe_url,
// physical_address).
char *required_pack(const Stentor__V1__TemplateVersion *version);
const char *required_copy(const char *required, Arena *arena); // NULL stays NULL

// The next path that is missing or null; NULL: no more. *at begins at the packed paths (NULL: none)
// and is left behind the answer. A top-level name that `variables` lacks is taken from `defaults`;
// both may be NULL.
const char *required_missing(const char **at, const json_t *variables, const json_t *defaults);
// Names it as "variables.order.id", which lives in `arena`; false.
bool required_error(FieldError *err, const char *path, const Request *frozen, Arena *arena);
