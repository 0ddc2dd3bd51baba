// SPDX-License-Identifier: Apache-2.0
// links: stentor_feed
// Any bytes as an inbox token: refused, for none is signed; and the same bytes as the tenant of a
// token that is made, which is good until it ends and in no altered form.
#include <stdlib.h>
#include <string.h>

#include "common/feed/inbox_token.h"

#define NOW_US INT64_C(1790000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEY[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                          "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_tenant(const MasterKey *master, Str tenant, const char *record, unsigned altered)
{
    char text[INBOX_TOKEN_SIZE];
    InboxToken made = {.expires_at_us = NOW_US + 1000000};
    InboxToken read;
    (void)str_to_c(str_from(record), made.recipient_id, sizeof made.recipient_id);
    if (!id_is_tenant(tenant) || !str_to_c(tenant, made.tenant, sizeof made.tenant)) {
        return;
    }
    inbox_token_make(master, &made, text);
    require(inbox_token_check(master, str_from(text), NOW_US, &read) == INBOX_GOOD);
    require(memcmp(&read, &made, sizeof read) == 0);
    require(inbox_token_check(master, str_from(text), NOW_US + 1000000, &read) == INBOX_EXPIRED);
    size_t at = 4 + altered % (strlen(text) - 4);
    text[at] = text[at] == 'A' ? 'B' : 'A';
    require(inbox_token_check(master, str_from(text), NOW_US, &read) == INBOX_BAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static MasterKey *master;
    InboxToken read;
    if (master == NULL) {
        master = master_key_parse(str_from(KEY), NULL);
        require(master != NULL);
    }
    Str bytes = str_of(data, size);
    require(inbox_token_check(master, bytes, NOW_US, &read) == INBOX_BAD);
    unsigned altered = size > 0 ? data[size - 1] * 7U : 0;
    try_tenant(master, str_slice(bytes, 0, 32), "", altered);
    try_tenant(master, str_slice(bytes, 0, 32), "rcp_01K0000000000000000000000A", altered);
    return 0;
}
