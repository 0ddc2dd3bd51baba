// SPDX-License-Identifier: Apache-2.0
// The domains that mails are from, as configured (cfg.mail_domain.<tenant>.<domain>): which DKIM
// keys sign them, and where their bounces come back to. Keys are secrets as credentials are
// (common/credential), of vendor "dkim" and name "<domain>/<selector>". Law: a domain with a key
// that cannot be read signs nothing at all, so its mails wait; a key that was read once stays in
// use while its file cannot be read, or holds no key.
#pragma once

#include "common/base/buf.h"
#include "common/bus/jetstream/bus.h"
#include "common/config/mail_domain_entry.h"
#include "common/credential/secrets.h"
#include "common/mime/dkim.h"

enum { SEND_DOMAIN_KEYS_MAX = DKIM_PER_MAIL_MAX };

typedef struct SendDomains SendDomains;
typedef struct SendDomain SendDomain;

// secrets are borrowed; NULL: no key can be read.
SendDomains *send_domains_new(Secrets *secrets);
void send_domains_free(SendDomains *domains); // NULL-safe
// tenant and key are the subject's; an empty payload removes the entry.
bool send_domains_changed(SendDomains *domains, Str tenant, Str key, Str payload, Error *err);
// Of the address that a mail of the tenant is from: the tenant's own entry for its domain, else the
// platform's; NULL: none. Valid until the next change.
SendDomain *send_domains_find(const SendDomains *domains, Str tenant, Str address);
// How many of its keys cannot be read now: for /readyz, with one of them.
void send_domains_warn(const SendDomains *domains, Buf *warning);

Str send_domain_bounces(const SendDomain *domain); // empty: none
// Its keys, ready to sign; valid until the next change or call. ERROR_TRANSIENT names the key that
// cannot be read; ERROR_CANCELLED: one is being read just now.
bool send_domain_signers(
    SendDomain *domain, DkimSigner out[SEND_DOMAIN_KEYS_MAX], size_t *ret_count, Error *err);
