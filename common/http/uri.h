// SPDX-License-Identifier: Apache-2.0
// Percent-decoding of a path or of one query argument. Not a URI parser: libmicrohttpd splits, this
// decodes. Law: what it cannot decode stays as it was written, so that no two meanings arise; above
// all "%00" never becomes a NUL, which would cut the path short for everyone after us.
#pragma once

#include <stddef.h>

// In place; returns the new length, never more than the old; the result ends with a NUL.
size_t uri_unescape(char *text);
