// SPDX-License-Identifier: Apache-2.0
// DKIM signatures (RFC 6376) of a whole mail: relaxed/relaxed, SHA-256 (RFC 8301), RSA and Ed25519
// (RFC 8463), without `l=`. Two keys make two signatures: receivers that do not know Ed25519 use
// the other one. Pure but for OpenSSL; time is an argument. Law: which headers are signed is one
// table here; those that may stand once only, and those of one-click unsubscription, are listed
// once more than they stand in the mail, so that another one, added on the way, breaks the
// signature.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/codec/hash.h"

enum {
    DKIM_KEY_PEM_MAX = 16384,
    DKIM_RSA_BITS_MIN = 1024, // RFC 8301; 2048 is what providers ask for
    DKIM_RSA_BITS_MAX = 4096,
    DKIM_SELECTOR_MAX = 63,
    DKIM_PER_MAIL_MAX = 4,
    DKIM_RECORD_MAX = 1024,
};

typedef enum DkimAlgorithm { DKIM_NONE, DKIM_RSA_SHA256, DKIM_ED25519_SHA256 } DkimAlgorithm;

const char *dkim_algorithm_name(DkimAlgorithm algorithm); // "rsa-sha256", "ed25519-sha256"; ""
DkimAlgorithm dkim_algorithm_from_name(Str name);         // DKIM_NONE: unknown
// A label of DNS, or several with dots: [a-z0-9-]
bool dkim_is_selector(Str text);

typedef struct DkimKey DkimKey;

// A private key in PEM (PKCS#8 or PKCS#1), without a passphrase. ERROR_CONFIG says what it is
// instead; it never quotes the key.
DkimKey *dkim_key_read(DkimAlgorithm algorithm, Str pem, Error *err);
void dkim_key_free(DkimKey *key); // cleansed; NULL-safe
// What DNS has to hold at <selector>._domainkey.<domain>: "v=DKIM1; k=rsa; p=..."
bool dkim_key_record(const DkimKey *key, Buf *out);

typedef struct DkimSigner {
    Str domain, selector; // d= and s=
    const DkimKey *key;
    bool rewritten; // Date and Message-ID are: the vendor writes its own, so they are not signed
} DkimSigner;

// Appends the DKIM-Signature headers, which go in front of the message. `message`: headers, an
// empty line and a body, lines end in CRLF. The same message, keys and time give the same bytes.
// ERROR_PERMANENT: the message has no From, or no end of its headers.
bool dkim_sign(
    Str message, const DkimSigner *signers, size_t count, int64_t at_us, Buf *out, Error *err);

// ---- parts, for dkim_sign() and its tests ----

// SHA-256 of the body, relaxed.
void dkim_body_hash(Str body, uint8_t out[SHA256_LEN]);
// SHA-256 of the headers that `names` lists ("from : to : from": a name's last header first, then
// the one above it; one that is not there adds nothing), each relaxed, and of `signature`, the
// DKIM-Signature header without its `b=` value and without its last CRLF.
void dkim_header_hash(Str headers, Str names, Str signature, uint8_t out[SHA256_LEN]);
// Base64 of the signature over that hash. ERROR_CONFIG: the key does not sign.
bool dkim_sign_hash(const DkimKey *key, const uint8_t hash[SHA256_LEN], Buf *out, Error *err);
