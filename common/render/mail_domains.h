// SPDX-License-Identifier: Apache-2.0
// The domains that mails are from, as configured (cfg.mail_domain.<tenant>.>): what the renderer
// needs of them, which is whether and through which address links and opens are tracked.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/config/mail_domain_entry.h"

typedef struct MailDomains MailDomains;

typedef struct MailDomain {
    char *tracking_url; // without a '/' at its end; empty: the public address of the API
    bool track_opens;
    bool track_clicks;
} MailDomain;

MailDomains *mail_domains_new(void);
void mail_domains_free(MailDomains *domains); // NULL-safe
// tenant and key are the subject's. An empty payload removes the entry. ERROR_PERMANENT when it is
// no MailDomain, is another tenant's, or its tracking_url is no URL that a mail can have.
bool mail_domains_put(MailDomains *domains, Str tenant, Str key, Str payload, Error *err);
// Of the address that a mail of the tenant is from: the tenant's own entry for its domain, else the
// platform's; NULL: none, or the address has no domain.
const MailDomain *mail_domains_of(const MailDomains *domains, Str tenant, Str address);
