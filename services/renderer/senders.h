// SPDX-License-Identifier: Apache-2.0
// Senders: who a tenant's mails are from, and its default locale, from cfg.tenant.<tenant>.self.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct Senders Senders;

typedef struct Sender {
    char *address; // empty: the dispatcher's default sender
    char *name;
    char *locale;           // of requests that name none; may be empty
    char *physical_address; // for the footer; may be empty
    bool suspended;
} Sender;

Senders *senders_new(void);
void senders_free(Senders *senders);
// An empty payload removes the entry. ERROR_PERMANENT when it is not a Tenant, is another's, or a
// line break is in it.
bool senders_put(Senders *senders, Str tenant, Str payload, Error *err);
// Never NULL: a tenant without an entry has empty fields.
const Sender *senders_get(const Senders *senders, Str tenant);
