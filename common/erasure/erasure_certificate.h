// SPDX-License-Identifier: Apache-2.0
// A certificate of erasure as text, and the chain that certificates make: each holds the SHA-256 of
// the one before, and is signed. It blocks.
//
// Law: a certificate is issued only when nothing readable was found; it names what was looked at,
// what remains by design, and what ends later. It never holds an address or a name.
#pragma once

#include "common/codec/hash.h"
#include "common/erasure/erasure_key.h"
#include "common/erasure/erasure_request.h"
#include "common/erasure/erasure_scan.h"

typedef enum CertificateKind {
    CERTIFICATE_ERASURE, // the keys are destroyed, here
    CERTIFICATE_FINAL,   // and so are the epoch keys that had wrapped them: in every backup
} CertificateKind;

const char *certificate_kind_name(CertificateKind kind);

// What the chain's last one is; number 0: there is none.
typedef struct CertificateHead {
    int64_t number;
    uint8_t sha256[SHA256_LEN];
} CertificateHead;

typedef struct CertificateSpec {
    CertificateKind kind;
    const ErasureRequest *request;
    const ErasureScan *scan;
    const char *audit_head; // "SEQUENCE:HASH" of the audit log; "": not known
    const char *version;    // of the program
    int64_t now_us;
    const uint8_t *public_key; // ERASURE_PUBLIC_LEN
} CertificateSpec;

// Is it time for one of this kind? Not when there is one; the final one when every epoch key that
// had wrapped the destroyed keys is destroyed, and every other that was
// opened before their destruction, and no duty keeps a key.
bool certificate_due(
    PGconn *pg, const char *request, CertificateKind kind, bool *ret_due, Error *err);
// Made, signed, and stored behind the last one. *ret: itself.
bool certificate_issue(
    PGconn *pg, const CertificateSpec *spec, const ErasureKey *key, Arena *arena,
    CertificateHead *ret, Error *err);

// One of the chain, as it is stored.
typedef struct Certificate {
    int64_t number;
    const char *request;
    const char *kind;
    const char *stored_as; // the object's key; "": none
    Str body;
    Str sha256;    // 32 bytes
    Str signature; // 64 bytes
} Certificate;

// All of them, in order.
bool certificate_list(
    PGconn *pg, Arena *arena, const Certificate **ret, size_t *ret_count, Error *err);
// Does it say what its hash says, and bear the signature of the key that it names, and of
// `public_key` when that is not NULL? What it follows is not looked at. ERROR_PERMANENT as below.
bool certificate_check_alone(const Certificate *certificate, const uint8_t *public_key, Error *err);
// Does `certificate` follow `before` (NULL: it is the first), say what its hash says, and bear the
// signature of the key that it names, and of `public_key` when that is not NULL? ERROR_PERMANENT
// with its number and what is wrong.
bool certificate_check(
    const Certificate *certificate, const Certificate *before, const uint8_t *public_key,
    Error *err);
