// SPDX-License-Identifier: Apache-2.0
// For tests of what is signed: files of vectors, and whether a token's signature is its key's.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/vendor/jwt.h"

enum { CASE_FILE_MAX = 8192 };

static inline Str case_file(const char *name, Arena *arena)
{
    const char *path =
        arena_printf(arena, "%s/tests/unit/common/vendor/vectors/%s", STENTOR_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = arena_zalloc(arena, CASE_FILE_MAX);
    size_t len = fread(text, 1, CASE_FILE_MAX - 1, file);
    fclose(file);
    return str_of(text, len);
}

static inline Str case_decode(Str text, Arena *arena)
{
    size_t len = 0;
    uint8_t *bytes = arena_zalloc(arena, text.len + 1);
    assert_true(base64url_decode(text, bytes, text.len + 1, &len));
    return str_of(bytes, len);
}

// "header.claims.signature": the three parts decoded.
static inline void case_split(Str token, Arena *arena, Str ret[3])
{
    Str rest = token, part;
    for (int i = 0; i < 3; i++) {
        assert_true(str_split(&rest, '.', &part));
        ret[i] = case_decode(part, arena);
    }
    assert_int_equal(rest.len, 0);
}

static inline bool case_is_signed_es256(Str token, EVP_PKEY *key, Arena *arena)
{
    Str parts[3];
    case_split(token, arena, parts);
    assert_int_equal(parts[2].len, P256_SIGNATURE_LEN);
    const uint8_t *raw = (const uint8_t *)parts[2].ptr;
    ECDSA_SIG *signature = ECDSA_SIG_new();
    ECDSA_SIG_set0(signature, BN_bin2bn(raw, 32, NULL), BN_bin2bn(raw + 32, 32, NULL));
    uint8_t *der = NULL;
    int len = i2d_ECDSA_SIG(signature, &der);
    size_t text_len = token.len;
    while (token.ptr[text_len - 1] != '.') {
        text_len--;
    }
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool good =
        EVP_DigestVerifyInit(digest, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestVerify(digest, der, (size_t)len, (const uint8_t *)token.ptr, text_len - 1) == 1;
    EVP_MD_CTX_free(digest);
    OPENSSL_free(der);
    ECDSA_SIG_free(signature);
    return good;
}
