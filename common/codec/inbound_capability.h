// SPDX-License-Identifier: Apache-2.0
// The last part of a callback URL, /v1/inbound/<tenant>/<vendor>/<capability>: who knows it was
// given it by the operator. An HMAC of tenant and vendor under a key derived from the master key,
// so that it is checked without a look-up. It is made with the current key and good under each of
// the file, so that a rotation breaks no URL.
#pragma once

#include "common/codec/hash.h"
#include "common/codec/seal.h"

// The query argument of a URL that was given for one attempt: its token (bounce_token.h), and
// behind a '.' the W3C trace context of its mail, where it has one.
#define INBOUND_ATTEMPT "attempt"

enum { INBOUND_CAPABILITY_LEN = 32, INBOUND_CAPABILITY_SIZE = 33 };

void inbound_capability(
    const MasterKey *master, Str tenant, Str vendor, char out[INBOUND_CAPABILITY_SIZE]);
// In a time that depends on nothing but the number of keys.
bool inbound_capability_fits(const MasterKey *master, Str tenant, Str vendor, Str given);
