// SPDX-License-Identifier: Apache-2.0
// UUIDs as text: 8-4-4-4-12 hex digits, written in lower case. Pure.
#pragma once

#include "common/base/str.h"

enum { UUID_SIZE = 37 };

// Either case is read. false: it is not one, and `out` is empty.
bool uuid_read(Str text, char out[UUID_SIZE]);
// The same UUID for the same name: RFC 9562 version 8, from the first bytes of its SHA-256.
void uuid_derive(Str name, char out[UUID_SIZE]);
