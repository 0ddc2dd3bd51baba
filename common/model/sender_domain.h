// SPDX-License-Identifier: Apache-2.0
// Sender domains: which From a tenant may use. The operator names the domains: "acme.test" is this
// domain alone, "*.acme.test" every one below it (and not itself). Compared as A-labels, without
// regard to case; so a look-alike of other letters is another domain. Pure.
#pragma once

#include "common/model/address.h"

enum { SENDER_DOMAINS_MAX = 100 };

// *ret in `arena`, as it is stored: lower case, A-labels. false: reason fits after "'x': ".
bool sender_domain_parse(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE]);

Str sender_domain_of(Str address); // what stands behind the last '@'; empty: there is none

// What an entry says of a tenant's sender.
typedef struct SenderRule {
    char *const *domains;
    size_t domain_count;
    Str address; // of the entry; counts as verified while there are no domains: it was set before
                 // there were any
} SenderRule;

// May it be the From of the tenant's mail? Never for an empty address.
bool sender_may_use(const SenderRule *rule, Str address);
