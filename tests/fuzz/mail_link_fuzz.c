// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as a token; then the same bytes as the URL of a link, which is refused or comes back.
#include <stdlib.h>
#include <string.h>

#include "common/codec/mail_link.h"

#define NOW_US INT64_C(1790000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool seal(
    const MailLinkKey *key, const MailLink *link, char out[MAIL_LINK_TOKEN_SIZE], Error *err)
{
    MailLinkSealer sealer;
    require(mail_link_sealer_init(&sealer, key, link->tenant, err));
    bool ok = mail_link_seal(&sealer, link, out, err);
    mail_link_sealer_done(&sealer);
    return ok;
}

static void try_token(const MailLinkKey *key, Str token, Arena *arena)
{
    MailLink link;
    Error err = {0};
    char again[MAIL_LINK_TOKEN_SIZE];
    if (!mail_link_open(key, token, NOW_US, arena, &link, &err)) {
        require(err.kind == ERROR_PERMANENT);
        return;
    }
    require(seal(key, &link, again, &err));
    require(str_eq(str_from(again), token));
}

static void try_url(const MailLinkKey *key, Str url, Arena *arena)
{
    Error err = {0};
    char token[MAIL_LINK_TOKEN_SIZE];
    MailLink link = {
        .kind = MAIL_LINK_CLICK,
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
        .index = 1,
        .issued_at_us = NOW_US,
        .url = url,
    };
    if (!seal(key, &link, token, &err)) {
        require(!mail_link_is_url(url));
        return;
    }
    MailLink got;
    require(mail_link_open(key, str_from(token), NOW_US, arena, &got, &err));
    require(str_eq(got.url, url));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    MailLinkKey key = {.bytes = {{7}}, .count = 1};
    try_token(&key, str_of(data, size), arena);
    try_url(&key, str_of(data, size), arena);
    arena_free(arena);
    return 0;
}
