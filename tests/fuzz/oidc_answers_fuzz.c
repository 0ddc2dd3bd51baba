// SPDX-License-Identifier: Apache-2.0
// links: svc_gateway
// Any bytes as each of a provider's answers: what is taken is within its bounds, what is not has a
// reason.
#include <stdlib.h>

#include "services/gateway/access/oidc/id_token.h"
#include "services/gateway/access/oidc/oidc_answers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void read_document(Str text, Arena *arena)
{
    OidcDocument found = {0};
    Error err = {0};
    const HttpGuard guard = {.allow_private = true, .allow_loopback = true};
    if (!oidc_document_read(text, STR("https://id.test"), &guard, arena, &found, &err)) {
        check(err.kind == ERROR_TRANSIENT || err.kind == ERROR_CONFIG);
        return;
    }
    const Str urls[] = {found.authorize, found.token, found.keys};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        check(str_eq_nocase(str_slice(urls[i], 0, 4), STR("http")));
        check(!str_has_control(urls[i]) && str_find(urls[i], '#') < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 400, 401, 429, 500};
    Arena *arena = arena_new(0);
    Str text = str_of(data, size), token = STR_EMPTY;
    read_document(text, arena);
    (void)oidc_keys_check(text, NULL);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        Error err = {0};
        bool good = oidc_answer_read(statuses[i], text, arena, &token, &err);
        check(good ? token.len > 0 && token.len <= ID_TOKEN_MAX : err.kind != ERROR_NONE);
    }
    arena_free(arena);
    return 0;
}
