// SPDX-License-Identifier: Apache-2.0
// The key that signs certificates of erasure: Ed25519, in a file of its own (PEM, PKCS #8), of no
// use for anything else. Whoever has its public half checks a certificate without Stentor.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/str.h"

enum { ERASURE_SIGNATURE_LEN = 64, ERASURE_PUBLIC_LEN = 32, ERASURE_KEY_FILE_MAX = 4096 };

typedef struct ErasureKey ErasureKey;

// A new random key as the text of its file, in `arena`. ERROR_TRANSIENT: OpenSSL made none.
bool erasure_key_make(Arena *arena, Str *ret_pem, Error *err);
// ERROR_CONFIG: it is no Ed25519 private key.
ErasureKey *erasure_key_parse(Str pem, Error *err);
void erasure_key_free(ErasureKey *key); // NULL-safe
void erasure_key_public(const ErasureKey *key, uint8_t out[ERASURE_PUBLIC_LEN]);

bool erasure_sign(const ErasureKey *key, Str text, uint8_t out[ERASURE_SIGNATURE_LEN], Error *err);
// Was it signed by the key with this public half?
bool erasure_signed(
    const uint8_t public_key[ERASURE_PUBLIC_LEN], Str text,
    const uint8_t signature[ERASURE_SIGNATURE_LEN]);
