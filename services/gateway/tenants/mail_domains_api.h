// SPDX-License-Identifier: Apache-2.0
// /v1/mail-domains: which DKIM keys sign mails from a domain, where their bounces come back to, and
// what serves their links. Only the operator sees and puts them: they name files of the
// dispatcher's machine. Entries are kept as they were stored, with the sequence that a change
// replaces.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/config/mail_domain_entry.h"

enum { MAIL_DOMAINS_OF_TENANT_MAX = 1000, MAIL_DOMAIN_KEYS_MAX = 4 };

typedef struct MailDomainsApi MailDomainsApi;

MailDomainsApi *mail_domains_api_new(Bus *bus);
void mail_domains_api_free(MailDomainsApi *domains);
// As CONFIG brings it; an empty payload removes it.
void mail_domains_api_changed(
    MailDomainsApi *domains, Str tenant, Str domain, Str payload, uint64_t sequence);
void mail_domains_api_add(Api *api, MailDomainsApi *domains);
