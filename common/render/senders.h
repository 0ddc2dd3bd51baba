// SPDX-License-Identifier: Apache-2.0
// Senders: who a tenant's mails are from, its default locale and zone, and what its templates may
// show of it, from cfg.tenant.<tenant>.self.
#pragma once

#include <jansson.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct Senders Senders;

typedef struct Sender {
    char *address; // empty: the dispatcher's default sender
    char *name;
    char *reply_to;         // empty: none
    char *locale;           // of requests that name none; may be empty
    char *zone;             // IANA; may be empty
    json_t *theme;          // an object of texts: {{theme.logo_url}}
    json_t *names;          // {{tenant.name}}
    char *physical_address; // for the footer; may be empty
    bool address_in_every;  // e-mail, also where the recipient may not opt out
    bool suspended;
} Sender;

Senders *senders_new(void);
void senders_free(Senders *senders);
// An empty payload removes the entry. ERROR_PERMANENT when it is not a Tenant, is another's, or a
// line break is in it.
bool senders_put(Senders *senders, Str tenant, Str payload, Error *err);
// The tenant's entry cannot be read: what is known of it stays, and when nothing is known it counts
// as suspended.
void senders_unreadable(Senders *senders, Str tenant);
// Never NULL: a tenant without an entry has empty fields.
const Sender *senders_get(const Senders *senders, Str tenant);
