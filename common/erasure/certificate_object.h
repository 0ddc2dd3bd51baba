// SPDX-License-Identifier: Apache-2.0
// A certificate as an object: a line with its text, a line with its signature in hex. Read, its
// bytes are foreign: any bucket may hold anything. Pure.
#pragma once

#include "common/erasure/erasure_certificate.h"

typedef struct CertificateObject {
    Certificate certificate; // unchecked (certificate_check); stored_as is the caller's
    const char *tenant;
    const char *recipient_id; // "": none
    const char *keys;         // "<subject>:<generation>", separated by commas; "": none
    const char *kept;         // the same of those that a duty keeps
    const char *duty;         // "": none
    int64_t kept_until_us;    // 0: none
    const char *ground;
    const char *by;
    int64_t erased_us;
} CertificateObject;

// In `arena`. ERROR_PERMANENT: it is no certificate.
bool certificate_object_read(Str object, Arena *arena, CertificateObject *ret, Error *err);
