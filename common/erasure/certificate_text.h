// SPDX-License-Identifier: Apache-2.0
// The text of a certificate: canonical JSON (sorted names, no blanks), the same for the same facts.
#pragma once

#include "common/erasure/erasure_certificate.h"

typedef struct CertificateText {
    const CertificateSpec *spec;
    int64_t number;
    const char *previous; // hex; "": the first
} CertificateText;

// In `arena`; reads the destroyed keys and their epochs. NULL: Postgres did not answer.
const char *certificate_text(PGconn *pg, const CertificateText *text, Arena *arena, Error *err);

// What ties a certificate to the others.
typedef struct CertificateLinks {
    int64_t number;
    char request[40];
    char previous[2 * SHA256_LEN + 1];
    char public_key[2 * ERASURE_PUBLIC_LEN + 1];
} CertificateLinks;

// false: the text is not a certificate's.
bool certificate_links(Str body, CertificateLinks *ret);
