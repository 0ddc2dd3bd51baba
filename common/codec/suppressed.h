// SPDX-License-Identifier: Apache-2.0
// Is an address suppressed, while its entry may have been made under another hash key than the
// current one? Only the address itself tells: a hash of one key says nothing of that of another.
// Pure.
#pragma once

#include "common/codec/master_key.h"
#include "common/model/suppressions.h"

// Asked after suppressions_classify has found nothing under the hash that is at hand. With one hash
// key (nearly always) it asks nothing more and costs nothing; with several it looks under each, the
// tenant's list and the platform's.
SuppressionReason suppressed_under_any(
    const Suppressions *known, const HashKeys *keys, Str tenant, Channel channel, Category category,
    Str address, int64_t now_us);

// ---- pauses by guard rails ----

// Guard rails pause the marketing e-mails of a tenant from one From domain, to all addresses or to
// those of one provider (mail_provider). A pause is a suppression whose hash stands for that domain
// and provider, so whoever has the suppressions in memory knows it.
// provider empty: every provider. Letter case of the domain does not count.
void mail_scope_hash(Str from_domain, Str provider, uint8_t ret[SUPPRESSION_HASH_LEN]);

// The pause in force of a mail from and to these addresses; to empty: not known, so only a pause of
// all providers is found. Costs nothing for other categories than marketing.
SuppressionReason mail_scope_suppressed(
    const Suppressions *known, Str tenant, Channel channel, Category category, Str from_domain,
    Str to, int64_t now_us);
