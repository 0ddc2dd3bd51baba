// SPDX-License-Identifier: Apache-2.0
// What Postgres keeps of a password (pg_authid.rolpassword, RFC 5803:
// "SCRAM-SHA-256$4096:<salt>$<stored key>:<server key>"): is it of this one? Pure.
#pragma once

#include <stdbool.h>

#include "common/base/str.h"

// `password` in printable ASCII: of others Postgres keeps a prepared form (SASLprep). false also
// for a verifier of another kind (md5).
bool scram_matches(Str verifier, Str password);
