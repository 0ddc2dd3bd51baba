// SPDX-License-Identifier: Apache-2.0
// links: svc_gateway
// Any bytes as an ID token, behind a line with the provider's keys, as any bytes too: refused, for
// no signature of theirs is good. The second line is also tried with a set that has a real key.
#include <stdlib.h>

#include "services/gateway/access/oidc/id_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The public key of RFC 7515, A.3.
static const char KEYS[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
                           "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                           "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";

static void refuse(Str token, Str keys)
{
    Arena *arena = arena_new(0);
    Error err = {0};
    const IdTokenWanted wanted = {
        STR("https://id.test"), STR("console"), STR("n1"), INT64_C(1790000000000000)};
    json_t *claims = id_token_check(token, keys, &wanted, arena, &err);
    if (claims != NULL || (err.kind != ERROR_PERMANENT && err.kind != ERROR_TRANSIENT)) {
        abort();
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str token = str_of(data, size), keys = STR_EMPTY;
    (void)str_split(&token, '\n', &keys);
    refuse(token, keys);
    refuse(token, str_from(KEYS));
    return 0;
}
