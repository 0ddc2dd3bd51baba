// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as a token; then the same bytes behind a good signature, so that the parser behind the
// check is met too. What is taken must give the same token again.
#include <stdlib.h>
#include <string.h>

#include "common/codec/opt_out.h"

enum { INNER_MAX = 160 };
#define NOW_US INT64_C(1790000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_token(const OptOutKey *key, Str token, Arena *arena)
{
    OptOut what;
    Error err = {0};
    char again[OPT_OUT_TOKEN_SIZE];
    if (!opt_out_verify(key, token, NOW_US, arena, &what, &err)) {
        require(err.kind == ERROR_PERMANENT);
        return;
    }
    require(opt_out_sign(key, &what, again, &err));
    require(str_eq(str_from(again), token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    OptOutKey key = {.bytes = {{7}}, .count = 1};
    try_token(&key, str_of(data, size), arena);
    size_t len = size < INNER_MAX ? size : INNER_MAX;
    uint8_t inner[INNER_MAX + SHA256_LEN];
    char token[4 + (INNER_MAX + SHA256_LEN) * 4 / 3 + 8] = "oot_";
    memcpy(inner, data, len);
    hmac_sha256(str_of(key.bytes[0], sizeof key.bytes[0]), str_of(inner, len), inner + len);
    base64url_encode(inner, len + SHA256_LEN, token + 4);
    try_token(&key, str_from(token), arena);
    arena_free(arena);
    return 0;
}
