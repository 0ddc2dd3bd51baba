// SPDX-License-Identifier: Apache-2.0
#include "common/codec/suppressed.h"

#include <ctype.h>

#include "common/codec/hash.h"
#include "common/model/rules/mail_provider.h"

SuppressionReason suppressed_under_any(
    const Suppressions *known, const HashKeys *keys, Str tenant, Channel channel, Category category,
    Str address, int64_t now_us)
{
    SuppressionReason found = SUPPRESSION_NONE;
    if (keys->count < 2 || address.len == 0) {
        return found;
    }
    for (size_t i = 0; i < keys->count && found == SUPPRESSION_NONE; i++) {
        uint8_t own[ADDRESS_HASH_LEN];
        uint8_t platform[ADDRESS_HASH_LEN];
        address_hash(keys->keys[i], tenant, channel, address, own);
        address_hash(keys->keys[i], STR("platform"), channel, address, platform);
        found = suppressions_classify(known, tenant, channel, category, own, platform, now_us);
    }
    return found;
}

// ---- pauses by guard rails ----

enum { DOMAIN_MAX = 255 };

void mail_scope_hash(Str from_domain, Str provider, uint8_t ret[SUPPRESSION_HASH_LEN])
{
    char text[DOMAIN_MAX];
    size_t len = from_domain.len < sizeof text ? from_domain.len : sizeof text;
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)tolower((unsigned char)from_domain.ptr[i]);
    }
    Sha256 *digest = sha256_begin();
    sha256_add(digest, STR("stentor mail scope\n"));
    sha256_add(digest, str_of(text, len));
    sha256_add(digest, STR("\n"));
    sha256_add(digest, provider);
    sha256_end(digest, ret);
}

static SuppressionReason find(
    const Suppressions *known, Str tenant, Channel channel, Category category, Str from_domain,
    Str provider, int64_t now_us)
{
    uint8_t hash[SUPPRESSION_HASH_LEN];
    mail_scope_hash(from_domain, provider, hash);
    return suppressions_of_entry(known, tenant, channel, category, hash, now_us);
}

SuppressionReason mail_scope_suppressed(
    const Suppressions *known, Str tenant, Channel channel, Category category, Str from_domain,
    Str to, int64_t now_us)
{
    if (category != CATEGORY_MARKETING || channel != CHANNEL_EMAIL || from_domain.len == 0 ||
        suppressions_count(known) == 0) {
        return SUPPRESSION_NONE;
    }
    SuppressionReason reason =
        find(known, tenant, channel, category, from_domain, STR_EMPTY, now_us);
    Str provider = mail_provider(to);
    if (reason == SUPPRESSION_NONE && provider.len > 0) {
        reason = find(known, tenant, channel, category, from_domain, provider, now_us);
    }
    return reason;
}
