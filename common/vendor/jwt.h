// SPDX-License-Identifier: Apache-2.0
// JSON Web Tokens (RFC 7519) in the compact form of RFC 7515, signed with RS256 or ES256 by
// OpenSSL. What is signed is the caller's text as it stands. Law: a key's text is never in an
// error.
#pragma once

#include <openssl/evp.h>

#include "common/base/arena.h"
#include "common/base/error.h"

enum { P256_SCALAR_LEN = 32, P256_POINT_LEN = 65, P256_SIGNATURE_LEN = 64, RSA_BITS_MIN = 2048 };

typedef enum JwtAlgorithm { JWT_RS256, JWT_ES256 } JwtAlgorithm;

// A private key as PEM, without a password. NULL: it is none, or none for the algorithm;
// ERROR_CONFIG. Free it with EVP_PKEY_free.
EVP_PKEY *jwt_key(JwtAlgorithm algorithm, Str pem, Error *err);
// Of P-256, from the number; NULL: out of range.
EVP_PKEY *p256_private(const uint8_t scalar[P256_SCALAR_LEN]);
// From an uncompressed point; NULL: it is not on the curve.
EVP_PKEY *p256_public(const uint8_t point[P256_POINT_LEN]);
bool p256_point(const EVP_PKEY *key, uint8_t ret[P256_POINT_LEN]);

// header and claims: JSON. Lives in the arena.
bool jwt_sign(
    JwtAlgorithm algorithm, EVP_PKEY *key, Str header, Str claims, Arena *arena, Str *ret,
    Error *err);
