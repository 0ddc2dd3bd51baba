// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as a return path; then the same bytes as what stands before a good MAC. What is taken
// must give the same token again, in lower case.
#include <stdlib.h>
#include <string.h>

#include "common/codec/bounce_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_made(const BounceKey *key, const BounceToken *read)
{
    char again[BOUNCE_TOKEN_LEN + 1];
    BounceToken reread;
    Error err = {0};
    require(bounce_token_make(
        key, STR("acme"), str_from(read->notification_id), read->attempt, again, &err));
    require(bounce_token_read(str_from(again), &reread));
    require(strcmp(reread.notification_id, read->notification_id) == 0);
    require(reread.attempt == read->attempt);
    require(bounce_token_check(key, &reread, STR("acme")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BounceKey key = {.bytes = {{7}}, .count = 1};
    BounceToken token;
    Str domain;
    if (bounce_address_read(str_of(data, size), &token, &domain)) {
        require(domain.len < size);
        try_made(&key, &token);
    }
    if (bounce_token_read(str_of(data, size), &token)) {
        try_made(&key, &token);
    }
    return 0;
}
