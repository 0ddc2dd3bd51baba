// SPDX-License-Identifier: Apache-2.0
// Which key a sealed field of an event names.
#pragma once

#include "common/base/error.h"
#include "common/db/keyring.h"

// false: absent (NULL), or without the subject or the generation of a key.
bool sealed_names_key(const Stentor__V1__Sealed *sealed);
// The same; ERROR_PERMANENT with the field's name.
bool sealed_check(const Stentor__V1__Sealed *sealed, const char *field, Error *err);
bool sealed_same_key(const Stentor__V1__Sealed *a, const Stentor__V1__Sealed *b);

// The want of the key that a field names, under the subject that it names: another hash key may
// have made it. The field has passed sealed_names_key().
KeyWant key_want_of(Str tenant, const Stentor__V1__Sealed *sealed);
